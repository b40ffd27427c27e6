import { type ErrorCode, publicAnswer } from '../core/errors.ts'
import { type Answer, page } from './page.ts'

/**
 * A page that goes on to `location` by itself. What it loads is asked for by a page of ours: a `Strict` cookie comes along, which
 * does not travel with a link on another site or a redirect that began there.
 */
export function goOnPage(location: string, { title = 'One moment …' } = {}): Answer {
  const answer = page(200, { title, text: 'This page goes on by itself.', link: { href: location, text: 'Go on' } })
  return { ...answer, headers: { ...answer.headers, Refresh: `0; url=${location}` } }
}

/** After signing out. It links to the next sign-in and does not start it: whoever signed out wants to be signed out. */
export function signedOutPage({ signIn }: { readonly signIn: string }): Answer {
  return page(200, {
    title: 'You are signed out.',
    text: 'You may close this window now.',
    link: { href: signIn, text: 'Sign in again' },
  })
}

/** What the provider's page has in a frame when a session has ended; hardly anybody sees it. */
export function sessionOverPage({ framedBy }: { readonly framedBy: readonly string[] }): Answer {
  return page(200, { title: 'You are signed out.', text: 'Your session here has ended.', framedBy })
}

export interface SignOutConfirmation {
  /** The sign-out URL, which takes the form. */
  readonly action: string
  /** The origins that the browser is sent through next: the provider's. */
  readonly goesOnTo?: readonly string[] | undefined
}

/** Asks before signing out, because another site may have sent the browser here. */
export function signOutConfirmationPage({ action, goesOnTo }: SignOutConfirmation): Answer {
  return page(200, {
    title: 'Do you want to sign out?',
    text: 'Another site asked to sign you out. Nothing has happened yet.',
    form: { action, button: 'Sign out', goesOnTo },
  })
}

export interface SignInError {
  readonly startAgain: string
  readonly requestId?: string | undefined
}

/** A sign-in that failed: what may be told of it, and a way to start again. */
export function signInErrorPage(code: ErrorCode, { startAgain, requestId }: SignInError): Answer {
  const { status, text } = publicAnswer(code)
  const answer = page(status, {
    title: 'You are not signed in.',
    text,
    link: { href: startAgain, text: 'Start again' },
    requestId,
  })
  return status === 503 ? { ...answer, headers: { ...answer.headers, 'Retry-After': '5' } } : answer
}
