import { connect } from 'node:net';

const ANSWER_MAX_MS = 1_000;

/**
 * Connects to a port of 127.0.0.1, sends a text and collects what comes back until `isEnough` says
 * so, the server closes, or a second has passed. Empty when nobody listens.
 */
export function ask(
  port: number,
  question: string,
  isEnough: (answer: string) => boolean = (answer) => answer !== '',
): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1');
    socket.setTimeout(ANSWER_MAX_MS, () => socket.destroy());
    socket.setEncoding('latin1');
    socket.on('connect', () => {
      if (question !== '') socket.write(question);
    });
    socket.on('data', (part: string) => {
      answer += part;
      if (isEnough(answer)) socket.destroy();
    });
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.destroy());
    socket.on('close', () => resolve(answer));
  });
}

/** Asks commands of Redis, in its inline form, and gives the raw answers. */
export function askRedis(port: number, ...commands: string[]): Promise<string> {
  const lines = [...commands, 'QUIT'].map((command) => `${command}\r\n`);
  // The server closes after QUIT.
  return ask(port, lines.join(''), () => false);
}
