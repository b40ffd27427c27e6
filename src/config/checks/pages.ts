import { contrast } from '../colors.ts'
import { below } from '../document/report.ts'
import type { Check } from './check.ts'

/** WCAG 2.2 §1.4.3 (AA), for text of ordinary size. */
const minContrast = 4.5

/**
 * Warns of colors with too little contrast. The text on a button always has enough, because
 * `textColorOn` chooses its color.
 */
export const pageColors: Check = ({ pages }, report) => {
  for (const scheme of ['light', 'dark'] as const) {
    const at = below('/pages/colours', scheme)
    const colors = pages.colours[scheme]
    if (!report.isValid(at) || !report.isSet(at)) continue
    for (const part of ['text', 'accent'] as const) {
      const found = contrast(colors[part], colors.surface)
      if (found >= minContrast) continue
      const setting = [part, 'surface'].find((name) => report.isSet(below(at, name))) ?? part
      report.warning(
        below(at, setting),
        `${part} (${colors[part]}) on surface (${colors.surface}) has a contrast of ${(Math.floor(found * 100) / 100).toFixed(2)}, which some people cannot read`,
        `WCAG 2.2 AA requires ${minContrast}`,
      )
    }
  }
}
