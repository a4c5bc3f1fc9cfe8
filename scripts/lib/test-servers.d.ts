import 'vitest';

declare module 'vitest' {
  /** What `inject` gives to every test: servers of this run, each empty when there is none. */
  export interface ProvidedContext {
    /** Connection string of the superuser. */
    postgresUrl: string;
    /** `redis://127.0.0.1:PORT`; shared by all test files, so name your keys apart. */
    redisUrl: string;
    /** `mysql://tg:tg@127.0.0.1:PORT/`, with the right to create databases. */
    mariadbUrl: string;
    /** `http://127.0.0.1:PORT`. */
    etcdUrl: string;
    /** Connect string `127.0.0.1:PORT`. */
    zookeeperUrl: string;
  }
}
