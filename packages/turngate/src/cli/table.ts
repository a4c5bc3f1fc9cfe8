/** Rows as text for people. */

/** Columns as wide as their widest cell; headings are the names of the first row's members. */
export function tableOf(rows: readonly Readonly<Record<string, string>>[]): string {
  const [first] = rows;
  if (first === undefined) return '(none)';
  const columns = Object.keys(first);
  const lines = [
    columns,
    ...rows.map((row) => columns.map((column) => oneLine(row[column] ?? ''))),
  ];
  const widths = columns.map((_, i) =>
    Math.max(...lines.map((line) => (line[i] as string).length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Names and values, one per line. */
export function factsOf(facts: Readonly<Record<string, string>>): string {
  const names = Object.keys(facts);
  const width = Math.max(...names.map((name) => name.length));
  return names.map((name) => `${name.padEnd(width)}  ${oneLine(facts[name] ?? '')}`).join('\n');
}

/** Terminals obey control characters, and keys come from strangers. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: taking them out is the point.
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '�');
}
