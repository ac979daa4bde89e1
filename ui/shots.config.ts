import { defineConfig } from '@playwright/test';
import base from './playwright.config';

export default defineConfig({
  ...base,
  testDir: '.',
  testMatch: process.env.ALL === '1' ? 'looks.spec.ts' : 'shots.spec.ts',
  projects: [{ name: 'pictures', use: { ...base.use, deviceScaleFactor: 1, actionTimeout: 10_000 } }],
});
