#!/usr/bin/env node
import { main } from './cli/main.ts'

process.exitCode = await main(process.argv.slice(2))
// Connections that are still open, to a Redis that hangs for example, must not keep the process.
process.exit()
