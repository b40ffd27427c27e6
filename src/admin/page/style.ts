import { uPlotStyle } from './uplot.ts'

/**
 * The style of the administration page, after that of all pages. A narrow window shows each row of
 * a table as a card. Charts have colors of elements, so they are visible in forced colors.
 */
export const adminStyle = `
${uPlotStyle}
body { padding-top: 1.5rem }
main, header, nav { box-sizing: border-box; max-width: 80rem; margin-inline: auto }
header { padding: 0 clamp(1rem, 6vw, 2.5rem) }
nav { padding: 0 clamp(1rem, 6vw, 2.5rem) 1rem }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; margin: 0; padding: 0 }
.skip { position: absolute; inset-block-start: -6rem; background: var(--surface); padding: .5rem 1rem }
.skip:focus { inset-block-start: .5rem }
h2 { font-size: 1.2rem; margin: 2rem 0 .75rem }
main > section:first-child h2 { margin-top: 0 }
h3 { font-size: 1rem; margin: 0 }
#live { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin: 0 0 1rem; font-size: .9375rem }
#live[hidden] { display: none }
#live p { margin: 0 }
#copied { position: absolute; clip-path: inset(50%) }
#live button, td > button { padding: .125rem .75rem }
.id, .id code { white-space: nowrap }
.id code { user-select: all }
.id code span { display: inline-block; max-width: 7.1ch; overflow: clip; text-overflow: ellipsis }
#main .copy { font-size: .8125rem; font-weight: 400; color: var(--accent); background: none; border: 0; padding: .125rem 0 }
@media (scripting: none) { .copy { display: none } }
[popover] { box-sizing: border-box; max-width: min(30rem, calc(100vw - 2rem)); padding: 1.5rem; color: var(--text); background: var(--surface); border: 1px solid; border-radius: .75rem; font-size: 1rem; overflow-wrap: anywhere }
[popover] h3 { font-size: 1.125rem }
[popover]::backdrop { background: rgb(0 0 0 / .4) }
[popover] p { margin: .75rem 0 1.25rem }
[popover] button { margin-inline-end: .75rem }
.wide { overflow-x: auto; margin: 0 0 1.25rem }
.wide:focus-visible, input:focus-visible, summary:focus-visible, main:focus-visible { outline: 3px solid var(--text); outline-offset: 2px }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; overflow-wrap: normal }
caption { text-align: start; font-size: .875rem; padding: 0 0 .5rem }
th, td { text-align: start; vertical-align: top; padding: .5rem 1rem .5rem 0; border-top: 1px solid rgb(128 128 128 / .35) }
td.action, th.action { position: sticky; inset-inline-end: 0; background: var(--surface); padding-inline: .5rem 0 }
td.number, th.number { text-align: end; font-variant-numeric: tabular-nums }
th { font-weight: 600 }
tbody th { font-weight: 400; min-width: 14rem; overflow-wrap: anywhere }
th strong, th strong code { font-size: 1rem }
td { min-width: 6.5rem }
td.action, td.number { min-width: 0 }
code { font-size: .875rem }
time { white-space: nowrap }
main { padding-inline: clamp(1rem, 3vw, 2rem) }
form.search { display: flex; flex-wrap: wrap; gap: .75rem 1rem; align-items: end; margin: 0 0 1rem }
label { font-size: .875rem; flex: 0 1 34rem }
input { display: block; font: inherit; color: inherit; background: var(--background); border: 1px solid rgb(128 128 128 / .8); border-radius: .375rem; padding: .375rem .5rem; margin: .25rem 0 0; width: 100%; box-sizing: border-box }
dt { font-weight: 600 }
strong { font-weight: 600 }
details ul, figure ul { margin: .25rem 0 0; padding: 0 0 0 1.1rem; font-size: .875rem }
figure ul { list-style: none; padding: 0 }
figure code { font-size: .8125rem }
.chart .u-value::before { content: none }
summary { cursor: pointer }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); gap: 1rem }
figure { margin: 0; padding: .75rem; border: 1px solid rgb(128 128 128 / .35); border-radius: .5rem; display: flex; flex-direction: column; justify-content: space-between; gap: .5rem }
figcaption { font-size: .875rem }
.chart { width: 100%; min-height: 12.5rem; overflow: hidden; color: var(--accent) }
@media (scripting: none) { .chart { display: none } }
.chart table { width: auto; color: var(--text) }
.chart :is(tr, th, td) { display: inline-block; border: 0; min-width: 0; margin: 0; padding: 0 .25rem; font-size: .8125rem }
@media (max-width: 48rem) {
header, nav { padding-inline: 1rem }
main { padding-inline: 1rem }
.wide { overflow-x: visible }
table, tbody, tr, th, td, caption { display: block }
thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; white-space: nowrap }
tr { border: 1px solid rgb(128 128 128 / .5); border-radius: .5rem; padding: .5rem .75rem; margin: 0 0 .75rem; position: relative }
th, td, tbody th { min-width: 0; border: 0; padding: .125rem 0; overflow-wrap: anywhere }
td { display: flow-root; padding-inline-start: 6.5rem }
tr:has(.action) th[scope=row] { padding-inline-end: 5rem }
td.action { position: absolute; inset-block-start: .5rem; inset-inline-end: .75rem; padding: 0; background: none }
.id { white-space: normal }
td.number { text-align: start }
td:empty { display: none }
td:not(.action)::before { content: attr(data-head); float: inline-start; width: 6rem; margin-inline-start: -6.5rem; font-size: .8125rem; line-height: 1.85; font-weight: 600 }
}
@media (forced-colors: active) { figure, tr { border-color: CanvasText } }
`
