// Loaded into a measured process (`--import`): appends the longest pause of its main thread in each
// quarter of a second, in ms, and the longest collection of garbage, to the file of its query.
import { appendFileSync } from 'node:fs'
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'

const file = new URL(import.meta.url).searchParams.get('file')
const delay = monitorEventLoopDelay({ resolution: 1 })
let collection = 0
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) collection = Math.max(collection, duration)
}).observe({ entryTypes: ['gc'] })
delay.enable()
setInterval(() => {
  appendFileSync(file, `${Date.now()} ${(delay.max / 1e6).toFixed(1)} ${collection.toFixed(1)}\n`)
  delay.reset()
  collection = 0
}, 250).unref()
