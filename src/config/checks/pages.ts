import { contrast } from '../colors.ts'
import { below } from '../document/report.ts'
import type { Check } from './upstreams.ts'

/** WCAG 2.2 §1.4.3 (AA), for text of ordinary size. */
const least = 4.5

/**
 * Colours that some people could not read. Those of a button's text are chosen so that everybody
 * can.
 */
export const pageColours: Check = ({ pages }, report) => {
  for (const scheme of ['light', 'dark'] as const) {
    const at = below('/pages/colours', scheme)
    const colours = pages.colours[scheme]
    if (!report.isSound(at) || !report.wasWritten(at)) continue
    for (const part of ['text', 'accent'] as const) {
      const found = contrast(colours[part], colours.surface)
      if (found >= least) continue
      const setting = [part, 'surface'].find((name) => report.wasWritten(below(at, name))) ?? part
      report.warning(
        below(at, setting),
        `${part} (${colours[part]}) on surface (${colours.surface}) has a contrast of ${(Math.floor(found * 100) / 100).toFixed(2)}, which not everybody can read`,
        `WCAG 2.2 AA asks for ${least}`,
      )
    }
  }
}
