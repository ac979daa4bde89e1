import { defineConfig, devices } from '@playwright/test';

// The browser is the system's: nothing is downloaded.
const launchOptions = { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium' };

export default defineConfig({
  testDir: 'tests',
  // They wait more than they work.
  workers: 3,
  // Each test has a server and a browser context of its own.
  fullyParallel: true,
  timeout: 60_000,
  // A browser on a busy machine misses a moment now and then; whatever passes only
  // the second time is named and counted as flaky.
  retries: 1,
  expect: { timeout: 20_000 },
  reporter: process.env.CI ? 'line' : 'list',
  use: { launchOptions, locale: 'en-GB', colorScheme: 'light' },
  projects: [
    {
      name: 'desktop',
      use: { ...devices['Desktop Chrome'], viewport: { width: 1440, height: 900 } },
      testIgnore: /phone\.spec\.ts/,
    },
    {
      name: 'phone',
      use: {
        ...devices['Desktop Chrome'],
        viewport: { width: 390, height: 780 },
        hasTouch: true,
        isMobile: true,
      },
      testMatch: /phone\.spec\.ts/,
    },
  ],
});
