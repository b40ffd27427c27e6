import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { loadConfig } from '../../src/config/load.ts'
import { secrets, type Replica } from './world.ts'

/** Changes the file of a replica, and reads the configuration in it. */
export function changed({ file }: Replica, from: string, to: string) {
  writeFileSync(file, readFileSync(file, 'utf8').replace(from, to))
  const loaded = loadConfig(file, secrets)
  assert.ok(loaded.ok)
  return loaded.config
}
