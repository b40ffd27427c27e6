import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const textOf = (file: string) => readFileSync(createRequire(import.meta.url).resolve(`uplot/dist/${file}`), 'utf8')

/**
 * uPlot, which the page embeds. In the program, .ci/bundle-rules.mjs replaces this module by the
 * texts.
 */
export const uPlotScript = textOf('uPlot.iife.min.js')
export const uPlotStyle = textOf('uPlot.min.css')
