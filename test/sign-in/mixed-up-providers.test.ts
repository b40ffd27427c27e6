import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Browser } from '../support/browser.ts'
import { withFeatures } from '../support/client-keys.ts'
import { separate, type TwoProviders, twoProviders } from '../support/two-providers.ts'

/** The callbacks of two sign-ins in one browser, one at each provider, which are not opened yet. */
interface Callbacks {
  readonly staff: URL
  readonly partners: URL
  readonly browser: Browser
}

async function signInAtBoth({ url }: TwoProviders): Promise<Callbacks> {
  const browser = new Browser('jane')
  const callbackAt = async (name: string) =>
    new URL(await browser.until(`${url}/${name}/echo`, `/.gatehouse/${name}/callback`))
  return { browser, staff: await callbackAt('staff'), partners: await callbackAt('partners') }
}

const mixtures: Readonly<Record<string, (callbacks: Callbacks) => URL>> = {
  'the response of one provider at the callback of the other': ({ staff, partners }) => {
    partners.search = staff.search
    return partners
  },
  'the same, with the cookie under the name for the other provider': ({ staff, partners, browser }) => {
    for (const [name, cookie] of browser.cookies) browser.cookies.set(name.replace('-staff-', '-partners-'), cookie)
    partners.search = staff.search
    return partners
  },
  'the state of the other sign-in': ({ staff, partners }) => withParameter('state', staff, partners),
  'the signed response of the other sign-in': ({ staff, partners }) => withParameter('response', staff, partners),
  'both responses at once': ({ staff, partners }) => {
    for (const [name, value] of partners.searchParams) staff.searchParams.append(name, value)
    return staff
  },
}

function withParameter(name: string, url: URL, from: URL): URL {
  url.searchParams.set(name, from.searchParams.get(name) ?? '')
  return url
}

async function assertRefused(two: TwoProviders, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const callbacks = await signInAtBoth(two)
    const url = mixtures[name]?.(callbacks).href ?? ''

    const { status } = await callbacks.browser.send(url)

    assert.ok(status === 400 || status === 502, `${name}: ${status}`)
    assert.deepEqual([two.staff.hits('/oauth/token'), two.partners.hits('/oauth/token')], [0, 0], name)
    for (const at of ['staff', 'partners'])
      assert.equal(callbacks.browser.cookies.has(`gatehouse-at-${at}`), false, name)
  }
}

const startBoth = (t: TestContext, providerSettings: string) =>
  twoProviders(t, {
    upstreams: separate,
    providerSettings,
    provider: { adjust: withFeatures({ jwtResponseModes: { enabled: true } }) },
  })

const [atOther, renamed, state, response, both] = Object.keys(mixtures) as [string, string, string, string, string]

test('A sign-in that began at one provider ends at no other, whatever is mixed, and no code is sent', async (t) => {
  await assertRefused(await startBoth(t, ''), [atOther, renamed, state, both])
})

test('The same holds for signed responses, and such a response is of use once, in its browser', async (t) => {
  const two = await startBoth(t, 'response_mode: jwt')
  await assertRefused(two, [atOther, renamed, response, both])
  const { staff, browser } = await signInAtBoth(two)
  const copy = new Browser('samir')

  assert.equal((await copy.send(staff.href)).status, 400)
  assert.equal((await browser.send(staff.href)).status, 303)
  browser.cookies.delete('gatehouse-at-staff')
  assert.equal((await browser.send(staff.href)).status, 400)
  assert.equal(two.staff.hits('/oauth/token'), 1)
})
