import { type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { type Chromium, type Person } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { startWorld, type World } from '../support/world.ts'

/** Where each page is met, by whom, and its status. */
export const pages = [
  ['bad-request', '/a%00b', 'nobody', 400],
  ['sign-in-required', '/api/orders', 'nobody', 401],
  ['forbidden', '/admin/?month=may', 'samir', 403],
  ['not-found', '/.gatehouse/nothing-here', 'nobody', 404],
  ['too-many-requests', '/.gatehouse/sign-in', 'nobody', 429],
  ['unavailable', '/down/', 'nobody', 502],
  ['sign-in-failed', '/.gatehouse/callback', 'nobody', 400],
  ['sign-out', '/.gatehouse/signed-out', 'samir', 200],
  ['signed-out', '/.gatehouse/signed-out', 'nobody', 200],
  ['signed-in', '/.gatehouse/signed-in', 'samir', 200],
  ['sessions', '/.gatehouse/sessions', 'samir', 200],
] as const

/** Whatever an image may try. */
export const logo =
  'data:image/svg+xml;base64,' +
  Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" width="160" height="40" onload="document.title = 'owned'">
<script>document.title = 'owned'; top.document.title = 'owned'</script>
<path d="M4 36V16L20 4l16 12v20H26V24H14v12z" fill="#8a1538"/></svg>`,
  ).toString('base64')

/** What stands below `pages:`. */
export const branded = `
  name: Example Ltd
  logo: '${logo}'
  colours: { light: { accent: '#8a1538' }, dark: { accent: '#ff9db5' } }
  support: { text: Service desk, mail: help@example.com }`

export interface Visitor {
  readonly page: Page
  readonly person: Person
  readonly complaints: readonly string[]
}

export interface PagesWorld {
  readonly world: World
  readonly nobody: Visitor
  /** Signed in, and no administrator. */
  readonly samir: Visitor
}

/** A gateway with these settings below `pages:` on which each of the pages can be met. */
export async function startPages(t: TestContext, chromium: Chromium, settings: string): Promise<PagesWorld> {
  const world = await startWorld(t, {
    // Samir's sign-in is the only one.
    session: 'page: true',
    settings: `limits: { per_client: { sign_ins: 1/h } }\npages: ${settings}`,
    upstreamSettings: `rules:
      - { path: /api/*, unauthenticated: 401 }
      - { path: /admin/*, require: { claim: fields.groups, any_of: [admins] } }
  down:
    url: http://127.0.0.1:${await freePort()}
    path: /down/
    rules: [{ path: /*, access: public }]`,
  })
  const [samir, nobody] = [await visitor(t, chromium, world), await visitor(t, chromium, world)]
  await samir.page.goto('/')
  await choose(samir.page, 'Samir Haddad')
  await samir.page.getByRole('heading', { name: 'Samir Haddad' }).waitFor()
  return { world, nobody, samir }
}

async function visitor(t: TestContext, chromium: Chromium, world: World): Promise<Visitor> {
  const person = await chromium.person(t, { baseURL: world.url })
  return { page: await person.tab(), person, complaints: person.complaints }
}

export function choose(page: Page, name: string): Promise<void> {
  return page.getByRole('button', { name }).click()
}
