#!/usr/bin/env node
import { main } from './cli/main.ts'

process.exitCode = await main(process.argv.slice(2))
// What still is open then (a Redis that does not answer, a provider that does not close) must not
// keep the process.
process.exit()
