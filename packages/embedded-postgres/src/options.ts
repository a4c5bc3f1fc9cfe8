/** How to run the server. Only `dataDir` is needed. */
export interface EmbeddedPostgresOptions {
  /**
   * Directory that holds the database, its password file and the owner's lock.
   *
   * It is created when missing, may be relative, and belongs to one live process at a time.
   * Running as root on an empty directory hands it to the user that PostgreSQL runs as.
   */
  readonly dataDir: string;
  /**
   * TCP port on 127.0.0.1.
   *
   * @default a free one, with a new try when somebody takes it first
   * @throws RangeError outside 1 to 65535
   */
  readonly port?: number;
  /**
   * Server settings, for example `{ max_connections: '200' }`.
   *
   * Leave `fsync` alone unless the data may be lost.
   *
   * @throws RangeError for a malformed name or one that this package decides itself
   */
  readonly settings?: Readonly<Record<string, string>>;
  /** Skip the flush to disk while creating a new database: faster, for throw-away data only. */
  readonly initNoSync?: boolean;
  /** Receives each line that `initdb` and PostgreSQL write. */
  readonly onLog?: (line: string) => void;
  /**
   * Time for the whole start: a stopping predecessor, `initdb`, crash recovery.
   *
   * @unit milliseconds
   * @default 60_000
   */
  readonly startTimeoutMs?: number;
}

const OWN_SETTINGS = new Set([
  'config_file',
  'data_directory',
  'hba_file',
  'listen_addresses',
  'log_destination',
  'logging_collector',
  'port',
  'unix_socket_directories',
]);

/** Rejects options that could only fail later, or worse, work in part. */
export function assertOptions({ port, settings, startTimeoutMs }: EmbeddedPostgresOptions): void {
  if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= 65_535)) {
    throw new RangeError(`port must be an integer from 1 to 65535, not ${port}`);
  }
  if (startTimeoutMs !== undefined && !(startTimeoutMs > 0)) {
    throw new RangeError(`startTimeoutMs must be above 0, not ${startTimeoutMs}`);
  }
  for (const name of Object.keys(settings ?? {})) {
    if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) throw new RangeError(`bad setting name "${name}"`);
    if (OWN_SETTINGS.has(name.toLowerCase())) {
      throw new RangeError(`the setting "${name}" is decided by the embedded server`);
    }
  }
}
