import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JarBrowser } from '../support/jar-browser.ts'
import { startWorld } from '../support/world.ts'

// Over http, the names of cookies have no prefix, so any host of the domain can set them.
const host = 'orders.example.test'
const sentTo = { headers: { host } }
const junkOf = (value: string) => [
  { name: 'gatehouse', value, path: '/', domain: 'example.test' },
  { name: 'gatehouse', value, path: '/echo', domain: 'example.test' },
  { name: 'gatehouse', value, path: '/', domain: host },
]

test('A junk session cookie of another host signs nobody out, and is gone after one response', async (t) => {
  const world = await startWorld(t)
  const person = world.browser()
  await person.get(`${world.url}/echo`)
  const jane = new JarBrowser('jane')
  const own = { name: 'gatehouse', value: person.cookies.get('gatehouse')?.value ?? '', path: '/', domain: host }

  for (const value of ['junk', '', 'A'.repeat(64), own.value])
    for (const junk of junkOf(value))
      for (const order of ['before', 'after']) {
        const kept = { ...own, hostOnly: true } as const
        jane.kept = order === 'before' ? [junk, kept] : [kept, junk]
        const page = await jane.send(`${world.url}/echo`, sentTo)

        assert.equal(page.status, 200, JSON.stringify(jane.kept))
        assert.match(page.body, /"X-Remote-User",\s*"jane"/)
        assert.deepEqual(
          jane.kept.filter(({ name }) => name === 'gatehouse'),
          [kept],
        )
      }
})

test('A junk session cookie of another host causes no loop of sign-ins', async (t) => {
  const world = await startWorld(t)
  const jane = new JarBrowser('jane')
  const junk = { name: 'gatehouse', value: 'junk', path: '/echo', domain: '127.0.0.1', hostOnly: true } as const
  jane.kept = [junk]

  const page = await jane.get(`${world.url}/echo`)

  assert.match(page.body, /"X-Remote-User",\s*"jane"/)
  assert.equal(world.provider.hits('/oauth/authorize'), 1)
})

test('A cookie of another host does not replace the session of a person', async (t) => {
  const world = await startWorld(t)
  const [person, mallory] = [world.browser(), world.browser('samir')]
  await person.get(`${world.url}/echo`)
  await mallory.get(`${world.url}/echo`)
  const valueOf = ({ cookies }: typeof person) => cookies.get('gatehouse')?.value ?? ''
  const own = { name: 'gatehouse', value: valueOf(person), path: '/', domain: host, hostOnly: true } as const
  const jane = new JarBrowser('jane')

  for (const added of junkOf(valueOf(mallory))) {
    jane.kept = [added, own]
    assert.equal((await jane.send(`${world.url}/echo`, sentTo)).status, 400)
    assert.match((await jane.send(`${world.url}/echo`, sentTo)).body, /"X-Remote-User",\s*"jane"/)
  }
})
