import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { deserialize, serialize } from 'node:v8'
import { loadConfig } from '../../src/config/load.ts'
import type { GatewayConfig } from '../../src/config/model/gateway.ts'
import { portable, restored } from '../../src/workers/worker-config.ts'
import { environment } from '../config/environment.ts'

const folder = 'test/config/cases'

/** What a worker receives. */
function received(config: GatewayConfig): GatewayConfig {
  return restored(deserialize(serialize(portable(config)))) as GatewayConfig
}

/** The classes of all objects in a value, by their paths. */
function classesIn(value: unknown, path = '', seen = new Set<unknown>()): string[] {
  if (typeof value !== 'object' || value === null || seen.has(value)) return []
  seen.add(value)
  const name = value.constructor.name
  if (Buffer.isBuffer(value)) return [`${path} ${name}`]
  const members = value instanceof Map ? [...value] : Object.entries(value)
  return [`${path} ${name}`, ...members.flatMap(([key, member]) => classesIn(member, `${path}.${String(key)}`, seen))]
}

test('Each configuration comes to a worker as it was, with objects of the same classes', () => {
  let count = 0
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.yaml'))) {
    const loaded = loadConfig(`${folder}/${file}`, environment)
    if (!loaded.ok) continue
    const copy = received(loaded.config)
    assert.deepEqual(copy, loaded.config, file)
    assert.deepEqual(classesIn(copy), classesIn(loaded.config), file)
    count += 1
  }
  assert.ok(count > 20, `${count} valid files`)
})

test('A configuration with an object of an unknown class is not sent', () => {
  class Unknown {}
  assert.throws(() => portable({ upstreams: [new Unknown()] }), /a Unknown cannot be sent to a worker/)
})

test('Requirements on networks, times and patterns, and header maps, work in a worker', () => {
  const loaded = loadConfig(`${folder}/requirements-of-every-kind.yaml`, environment)
  assert.ok(loaded.ok)
  const text = JSON.stringify(requirementsOf(received(loaded.config)))

  assert.match(text, /"networks":true/)
  assert.match(text, /"time":(?:true|false)/)
  assert.match(text, /"matches":(?:true|false)/)
})

/** The outcomes of all requirements that are objects with methods. */
function requirementsOf(value: unknown): unknown {
  const outcomes: Record<string, boolean> = {}
  const visit = (part: unknown): void => {
    if (typeof part !== 'object' || part === null) return
    for (const [name, member] of Object.entries(part as Record<string, unknown>)) {
      if (name === 'networks') outcomes['networks'] ||= (member as { has(ip: string): boolean }).has('10.1.2.3')
      else if (name === 'time') outcomes['time'] = (member as { has(at: number): boolean }).has(Date.now())
      else if (name === 'matches' && typeof member === 'object' && member !== null)
        outcomes['matches'] = (member as { matches(text: string): boolean }).matches('x')
      else visit(member)
    }
  }
  visit(value)
  return outcomes
}
