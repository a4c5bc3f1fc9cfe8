/** Keeps the password of a database url out of what is printed. */

const hidden = '***';

/** The text with the url and every spelling of its password blotted out. */
export function withoutSecrets(text: string, url: string): string {
  const secrets = [url, ...passwordsOf(url)].filter((secret) => secret !== '');
  return secrets.reduce((shown, secret) => shown.replaceAll(secret, hidden), text);
}

/** As spelt in the url and as it means; not by URL, which refuses some urls that drivers accept. */
function passwordsOf(url: string): string[] {
  const inAuthority = /^[a-z]+:\/\/[^:@/]*:([^/]*)@/i.exec(url)?.[1];
  const inQuery = /[?&]password=([^&#]*)/i.exec(url)?.[1];
  return [inAuthority, inQuery].flatMap((spelt) =>
    spelt === undefined ? [] : [spelt, decoded(spelt)],
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
