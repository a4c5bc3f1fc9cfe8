import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Not `packages/*/src/...`: patterns are relative to `--dir`, which should work everywhere.
    include: ['**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', '**/.git/**', '**/.turngate/**'],
    globalSetup: ['scripts/lib/test-servers.mjs'],
    pool: 'forks',
    // Two cores, and a test process may have a database server of its own.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
