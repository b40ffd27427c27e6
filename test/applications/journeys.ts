import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { picture, startChromium, type Chromium } from '../support/chromium.ts'
import { Missing } from './installed.ts'
import type { Application } from './programs.ts'
import { startSite, type PersonName, type Site } from './site.ts'

const chromium = await startChromium({ isWhole: true })
const minutes = 60_000

/** How one application does what every application does. */
export interface Subject {
  readonly name: string
  /** Its page in docs/applications, and its preset. */
  readonly page: string
  /** Downloads the application. @throws {Missing} */
  install(): void
  start(t: TestContext): Promise<Application>
  /** A path whose page shows who is signed in. */
  readonly home: string
  /** Waits until the page at `home` shows this person. */
  showsPerson(page: Page, person: PersonName): Promise<void>
  /** Does what people do with the application. */
  use?(page: Page, site: Site): Promise<void>
  /** Cookies of the application that must not reach the browser. */
  readonly sessionCookies?: RegExp
  readonly form?: Form
  /** The application sends what people enter with scripts. */
  readonly script?: Script
  /** Uses the sign-out link of the application. */
  signOut?(page: Page): Promise<void>
  /** How the notice gets into its pages: the page in docs/applications says it. */
  readonly hasNotice: boolean
}

/** A form of an application. */
interface Form {
  fill(page: Page, site: Site, text: string): Promise<void>
  send(page: Page): Promise<void>
  /** Waits until the application has saved the text. */
  isSaved(page: Page, site: Site, text: string): Promise<void>
}

/** What an application sends with a script. */
interface Script {
  /** Enters something. */
  enter(page: Page, site: Site): Promise<void>
  /** Sends it. */
  send(page: Page): Promise<void>
  /** The method of the request, and its path with the query. */
  readonly request: readonly [method: string, target: RegExp]
  /** Waits until the page says that nothing was saved, and still has what the person entered. */
  saysNotSaved(page: Page): Promise<void>
}

type Journey = (t: TestContext, chromium: Chromium) => Promise<void>

/**
 * Tests of one application: the journeys that every application has, and its own. Without what the
 * application needs, they are skipped, and say what is missing.
 */
export function journeysOf(subject: Subject, own: Readonly<Record<string, Journey>> = {}): void {
  const missing = whatIsMissing(subject)
  for (const [title, journey] of Object.entries({ ...commonJourneys(subject), ...own }))
    test(`${subject.name}: ${title}`, { skip: missing ?? false }, (t) => journey(t, chromium))
}

function whatIsMissing({ name, install }: Subject): string | undefined {
  try {
    install()
    return undefined
  } catch (error) {
    if (error instanceof Missing) return `${name} ${error.message}`
    throw error
  }
}

function commonJourneys(subject: Subject): Readonly<Record<string, Journey>> {
  const { form, script, signOut } = subject
  return {
    'the next person in the same browser is somebody else': (t) => nextPerson(t, subject),
    ...(form && {
      'a form that is sent after the session has ended is sent once after the sign-in': (t) =>
        keptForm(t, subject, form),
    }),
    ...(script && {
      'after the session has ended, a script may repeat its request, and the person learns that it failed': (t) =>
        failedScript(t, subject, script),
    }),
    ...(subject.hasNotice && {
      'the notice warns before the session ends, and says that it has ended': (t) => notice(t, subject),
    }),
    ...(signOut && {
      'the link of the application signs out of everything': async (t) => {
        const { site, page } = await signedIn(t, subject)
        await signOut(page)
        await page.getByRole('heading', { name: 'You are signed out.' }).waitFor()
        await page.goto(site.url + subject.home)
        await site.asks(page)
      },
    }),
  }
}

/** Jane, who is signed in and sees the first page. */
export async function signedIn(t: TestContext, subject: Subject, { session }: { readonly session?: string } = {}) {
  const site = await startSite(t, await subject.start(t), subject.page, session)
  const person = await chromium.person(t)
  const page = await person.tab()
  await site.signIn(page, subject.home)
  await subject.showsPerson(page, 'Jane Doe')
  return { site, person, page }
}

async function nextPerson(t: TestContext, subject: Subject): Promise<void> {
  const { site, person, page } = await signedIn(t, subject)
  await subject.use?.(page, site)

  await site.endAtProvider('Jane Doe')
  await page.goto(site.url + subject.home)
  await site.asks(page)
  await site.signIn(page, subject.home, 'Zoë Müller')

  await subject.showsPerson(page, 'Zoë Müller')
  assert.doesNotMatch(await page.locator('body').innerText(), /jane/i)
  const cookies = (await person.context.cookies()).map(({ name }) => name)
  assert.deepEqual(
    cookies.filter((name) => subject.sessionCookies?.test(name)),
    [],
  )
}

async function keptForm(t: TestContext, subject: Subject, form: Form): Promise<void> {
  const { site, page } = await signedIn(t, subject)
  const text = 'Toner & paper'
  await form.fill(page, site, text)

  await site.endAtProvider('Jane Doe')
  await form.send(page)
  await site.choose(page, 'Jane Doe')
  await page.getByRole('button', { name: 'Send now' }).click()

  await form.isSaved(page, site, text)
  const sent = () => site.replica.log.filter(({ message }) => message === 'kept_request.sent').length
  assert.equal(sent(), 1)
}

async function failedScript(t: TestContext, subject: Subject, script: Script): Promise<void> {
  const { site, page } = await signedIn(t, subject)
  await script.enter(page, site)
  const [method, target] = script.request

  await site.endAtProvider('Jane Doe')
  const answered = page.waitForResponse(
    (response) => response.request().method() === method && target.test(response.url().slice(site.url.length)),
  )
  await script.send(page)

  const response = await answered
  assert.equal(response.status(), 401)
  assert.equal(((await response.json()) as { readonly repeat?: string }).repeat, 'after_sign_in')
  await script.saysNotSaved(page)
}

/**
 * Activity does not move the end by `absolute_timeout`, so requests that the application sends in
 * the background do not keep the notice away.
 */
async function notice(t: TestContext, subject: Subject): Promise<void> {
  const { site, page } = await signedIn(t, subject, { session: 'idle_timeout: 1h, absolute_timeout: 1h' })
  await page.setViewportSize({ width: 1000, height: 650 })

  site.moveClock(58.5 * minutes)
  await page.goto(site.url + subject.home)
  await subject.showsPerson(page, 'Jane Doe')
  await page.getByText('You will be signed out in').waitFor()
  await picture(page, `applications/${subject.page}`, { type: 'jpeg', quality: 55 })

  site.moveClock(2 * minutes)
  await page.getByText('You are signed out.').waitFor()
}
