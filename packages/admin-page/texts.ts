import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const textOf = (file: string) => readFileSync(createRequire(import.meta.url).resolve(file), 'utf8')

/**
 * The script and the style of the page, which embeds them after those of uPlot. In the program,
 * .ci/bundle-rules.mjs replaces this module by the texts.
 */
export const texts = {
  uPlotScript: textOf('uplot/dist/uPlot.iife.min.js'),
  uPlotStyle: textOf('uplot/dist/uPlot.min.css'),
  script: textOf('./script.js'),
  style: textOf('./style.css'),
}
