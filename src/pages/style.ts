import { contrast } from '../config/colors.ts'
import type { ColorsConfig, PagesConfig } from '../config/model/pages.ts'

/**
 * The style of the built-in pages. Lengths are in rem, so that they follow the text size of the
 * browser. Nothing moves. The focus outline has the color of the text, whose contrast the
 * configuration check verifies.
 */
export function styleOf({ light, dark }: PagesConfig['colours']): string {
  return `
:root { color-scheme: light dark; ${variables(light)} }
@media (prefers-color-scheme: dark) { :root { ${variables(dark)} } }
body { font: 1.0625rem/1.6 system-ui, sans-serif; margin: 0; padding: 12vh max(1rem, 4vw) 3rem; color: var(--text); background: var(--background) }
main { box-sizing: border-box; max-width: 32rem; margin: 0 auto; padding: 2rem clamp(1rem, 6vw, 2.5rem) 1.25rem; background: var(--surface); border: 1px solid rgb(128 128 128 / .35); border-radius: .75rem; overflow-wrap: anywhere }
img { display: block; max-width: 100%; height: auto; max-height: 4rem; margin: 0 0 1.5rem }
h1 { font-size: 1.5rem; font-weight: 600; line-height: 1.3; margin: 0 0 .75rem }
p { margin: 0 0 1.25rem }
a { color: var(--accent); display: inline-block; padding: .125rem 0 }
button, .first { font: inherit; color: var(--on-accent); background: var(--accent); border: 1px solid transparent; border-radius: .375rem; padding: .5rem 1.25rem; text-decoration: none; cursor: pointer }
.danger { color: var(--surface); background: var(--danger) }
.second { color: var(--accent); background: none; border-color: currentcolor }
.second.danger { color: var(--danger) }
a:focus-visible, button:focus-visible { outline: 3px solid var(--text); outline-offset: 2px }
.name { font-weight: 600 }
.note { font-size: .875rem }
.outcome { font-weight: 600; padding: .375rem .75rem }
.outcome:focus-visible { outline: 3px solid var(--text) }
.sessions { list-style: none; margin: 0 0 1.25rem; padding: 0 }
.sessions ~ form { margin-bottom: 1rem }
.sessions li { border-top: 1px solid rgb(128 128 128 / .35); padding: 1rem 0 }
h2, h3 { font-size: 1.0625rem; font-weight: 600; margin: 0 0 .5rem }
input, select { font: inherit; box-sizing: border-box; width: 100%; padding: .375rem }
.badge { display: inline-block; font-size: .8125rem; border: 1px solid; border-radius: 1rem; padding: 0 .6rem }
dl { display: grid; gap: 0 1rem; font-size: .9375rem; margin: 0 0 1rem }
@media (min-width: 22rem) { dl { grid-template-columns: max-content 1fr } }
dd { margin: 0 }
`
}

function variables({ background, surface, text, accent, onAccent }: ColorsConfig): string {
  // What cannot be undone is red, if the surface permits the contrast.
  const danger = ['#b3261e', '#ff8f85'].find((red) => contrast(red, surface) >= 4.5) ?? text
  return `--background: ${background}; --surface: ${surface}; --text: ${text}; --accent: ${accent}; --on-accent: ${onAccent}; --danger: ${danger}`
}
