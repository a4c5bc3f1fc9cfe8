import 'vitest';

declare module 'vitest' {
  /** What `inject` gives to every test. */
  export interface ProvidedContext {
    /** Superuser connection string of the run's PostgreSQL; empty when there is none. */
    postgresUrl: string;
  }
}
