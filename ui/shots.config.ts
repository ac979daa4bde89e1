import { defineConfig } from '@playwright/test';
import base from './playwright.config';

export default defineConfig({
  ...base,
  testDir: '.',
  testMatch: 'shots.spec.ts',
  projects: [{ name: 'pictures', use: { ...base.use, deviceScaleFactor: 1 } }],
});
