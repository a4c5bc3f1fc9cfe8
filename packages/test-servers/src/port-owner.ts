import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const LISTENING = '0A';

/**
 * True when the process listens on the port. Without it, a server of somebody else who took the
 * port a moment earlier would be mistaken for ours. Only Linux tells; elsewhere the answer is yes.
 */
export function listensOn(pid: number, port: number): boolean {
  if (process.platform !== 'linux') return true;
  const sockets = new Set(['tcp', 'tcp6'].flatMap((table) => listenersOf(table, port)));
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => sockets.has(linkOf(pid, fd)));
  } catch {
    return false; // It has ended.
  }
}

/** Names of the sockets that listen on a port, as the links below `/proc/…/fd` have them. */
function listenersOf(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readTable(table).split('\n').slice(1);
  return rows.flatMap((row) => {
    const fields = row.trim().split(/\s+/);
    const isWanted = fields[1]?.endsWith(suffix) && fields[3] === LISTENING;
    return isWanted ? [`socket:[${fields[9]}]`] : [];
  });
}

function readTable(table: string): string {
  try {
    return readFileSync(`/proc/net/${table}`, 'utf8');
  } catch {
    return ''; // A machine without IPv6 has one table.
  }
}

function linkOf(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return ''; // Closed meanwhile.
  }
}
