import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deserialize, serialize } from 'node:v8'
import { loadConfig } from '../../src/config/load.ts'
import { portable, restored } from '../../src/workers/worker-config.ts'
import { environment } from '../config/environment.ts'

test('a configuration with all there is comes to a worker as it was', () => {
  const loaded = loadConfig('test/config/cases/full.yaml', environment)
  assert.ok(loaded.ok)

  const received = restored(deserialize(serialize(portable(loaded.config))))

  assert.deepEqual(received, loaded.config)
})
