/** Colours are variables, so that the dark page is the light one with other values. */
export const styles = `
:root { --page: #fbfaf7; --ink: #1f2328; --soft: #5f6670; --line: #dcdad4; --panel: #ffffff;
  --clean: #dcefe0; --clean-ink: #1d6b36; --hot: #c8321f; --cool: #f9ddd5; --on-hot: #2a0c07; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e7e9ec; --soft: #9aa3ad;
  --line: #30363d; --panel: #1b1f24; --clean: #17331f; --clean-ink: #7fd49a; --hot: #d9482f;
  --cool: #43231e; --on-hot: #fff1ed; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
p { max-width: 70ch; }
.wide { overflow-x: auto; background: var(--panel); border: 1px solid var(--line);
  border-radius: 10px; padding: 12px; }
.verdict { padding: .6rem .9rem; border-radius: 8px; }
.verdict.good { background: var(--clean); color: var(--clean-ink); }
.verdict.bad { background: var(--cool); }
.note, footer { color: var(--soft); font-size: .875rem; }
svg { display: block; width: 100%; min-width: 900px; height: auto; font-size: 14px; }
svg text { fill: var(--ink); dominant-baseline: central; }
svg .head { text-anchor: middle; font-size: 12.5px; fill: var(--soft); }
svg .row { text-anchor: end; }
svg .number { text-anchor: middle; font-weight: 600; }
svg text.clean { fill: var(--clean-ink); }
svg text.lost { fill: var(--on-hot); }
svg rect.clean { fill: var(--clean); }
svg rect.lost { fill: color-mix(in srgb, var(--hot) var(--heat), var(--cool)); }
svg rect.broken { fill: var(--line); }
svg rect.odd { stroke: var(--ink); stroke-width: 3; stroke-dasharray: 5 3; }
svg .bar { fill: var(--hot); }
svg .total { font-size: 13px; fill: var(--soft); }
table { border-collapse: collapse; width: 100%; min-width: 1080px; font-size: .8125rem;
  line-height: 1.35; }
th, td { text-align: left; vertical-align: top; padding: .5rem; border: 1px solid var(--line); }
thead td { border: 0; }
td b { display: block; }
td small { display: block; color: var(--soft); font-size: .75rem; margin-top: .2rem; }
td.clean b { color: var(--clean-ink); }
td.lost { background: var(--cool); }
td.odd { outline: 3px dashed var(--ink); outline-offset: -3px; }
dl { display: grid; grid-template-columns: minmax(11rem, max-content) 1fr; gap: .35rem 1.25rem; }
dt { font-weight: 600; }
dd { margin: 0; color: var(--soft); }
@media (max-width: 640px) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; } }
footer { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: .75rem; }
`;
