import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { startDemoUpstream } from '../../examples/demo/upstream.ts'
import { freePort } from '../support/free-port.ts'
import { startWorld, type World, type WorldOptions } from '../support/world.ts'

// The demo application in front of a person in Chromium.

export async function startDemoWorld(t: TestContext, options: WorldOptions = {}): Promise<World> {
  const port = await freePort()
  const world = await startWorld(t, { ...options, upstream: new URL(`http://127.0.0.1:${port}`) })
  const upstream = await startDemoUpstream({ host: '127.0.0.1', port, provider: new URL(world.provider.issuer) })
  t.after(() => upstream.close())
  return world
}

export async function signIn(page: Page, world: World, name: string): Promise<void> {
  await page.goto(world.url)
  await choose(page, name)
  await isAtTheApplicationAs(page, name)
}

export function choose(page: Page, name: string): Promise<void> {
  return page.getByRole('button', { name }).click()
}

export function isAtTheApplicationAs(page: Page, name: string): Promise<void> {
  return page.getByRole('heading', { name }).waitFor()
}

export function isSignedOut(page: Page): Promise<void> {
  return page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
}

/** The value of a request header, as the application shows it. */
export async function headerShown(page: Page, name: string): Promise<string> {
  return page
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader', { name, exact: true }) })
    .getByRole('cell')
    .innerText()
}
