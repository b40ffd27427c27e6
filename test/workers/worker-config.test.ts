import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deserialize, serialize } from 'node:v8'
import { loadConfig } from '../../src/config/load.ts'
import { portable, restored } from '../../src/workers/worker-config.ts'
import { environment } from '../config/environment.ts'

for (const file of ['full', 'service-accounts', 'token-exchange'])
  test(`a configuration with all there is comes to a worker as it was: ${file}`, () => {
    const loaded = loadConfig(`test/config/cases/${file}.yaml`, environment)
    assert.ok(loaded.ok)

    const received = restored(deserialize(serialize(portable(loaded.config))))

    assert.deepEqual(received, loaded.config)
  })
