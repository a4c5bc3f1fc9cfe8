import { writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { ask } from './ask.ts';
import { findProgram } from './program.ts';
import { runToEnd } from './run-to-end.ts';
import { startServer } from './start-servers.ts';
import type { TestServer } from './test-server.ts';

const START_TIMEOUT_MS = 60_000;

/** Runs before the first connection is taken, and again at each restart. */
const INIT_SQL = `CREATE USER IF NOT EXISTS tg@'127.0.0.1' IDENTIFIED BY 'tg';
GRANT ALL ON *.* TO tg@'127.0.0.1' WITH GRANT OPTION;
`;

/** Options of {@link startMariadb}. */
export interface MariadbOptions {
  /** More arguments of `mariadbd`; the last one of a name counts. */
  readonly args?: readonly string[];
}

/** Starts one MariaDB in about 2 s. User `tg`, password `tg`, may do everything. */
export async function startMariadb(options: MariadbOptions = {}): Promise<TestServer> {
  const program = findProgram('mariadbd');
  const installer = findProgram('mariadb-install-db');
  return startServer({
    name: 'mariadb',
    portsPerNode: 1,
    startTimeoutMs: START_TIMEOUT_MS,
    async prepare({ dir, port }) {
      const shared = ['--no-defaults', ...asThisUser(), `--datadir=${join(dir, 'data')}`];
      const initFile = join(dir, 'init.sql');
      await writeFile(initFile, INIT_SQL);
      const install = [installer, ...shared, '--auth-root-authentication-method=normal'];
      install.push('--skip-test-db', '--skip-name-resolve', '--innodb-log-file-size=16M');
      await runToEnd('mariadb-install-db', install, dir, START_TIMEOUT_MS);
      const command = [program, ...shared, `--port=${port}`, '--bind-address=127.0.0.1'];
      // Relative to the data: the path of a socket may have 107 characters at most.
      command.push('--socket=s.sock', '--pid-file=pid', '--skip-log-bin', '--skip-name-resolve');
      command.push('--innodb-buffer-pool-size=64M', '--innodb-log-file-size=16M');
      command.push(`--init-file=${initFile}`, ...(options.args ?? []));
      return {
        name: 'MariaDB',
        command,
        url: `mysql://tg:tg@127.0.0.1:${port}/`,
        isReady: async () => (await ask(port, '')).charCodeAt(GREETING_AT) === PROTOCOL_VERSION,
      };
    },
  });
}

/** A greeting begins with protocol version 10, after four bytes of length and number. */
const GREETING_AT = 4;
const PROTOCOL_VERSION = 10;

function asThisUser(): string[] {
  return process.getuid?.() === 0 ? [`--user=${userInfo().username}`] : [];
}
