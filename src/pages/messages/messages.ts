import type { ErrorCode } from '../../core/error-codes.ts'
import type { PageAction, PageName } from '../../core/page-template.ts'

/**
 * All that pages say, in one language. An error code or an action that is added has to be said in
 * each of them.
 */
export interface Messages {
  /** Which way it is written: HTML's `dir`. */
  readonly dir: 'ltr' | 'rtl'
  /**
   * What happened: the heading of a page that refuses something, the text of one about a sign-in
   * that failed.
   */
  readonly errors: Readonly<Record<ErrorCode, string>>
  /** What to do about it. */
  readonly advice: Readonly<Record<RefusalPage, string>>
  readonly actions: Readonly<Record<PageAction, string>>
  /** The text of a page about a fault that stays until the operator changes the configuration. */
  readonly misconfigured: string
  /** The text of the page, in a frame, that asks to sign in. */
  readonly signInFromFrame: string
  readonly signInFailed: string
  readonly signedIn: string
  readonly signedOut: Heading
  readonly confirmSignOut: Heading
  readonly stillSignedIn: Heading
  readonly sessionOver: Heading
  /** A page that goes on by itself. */
  readonly goOn: Heading & { readonly link: string }
  /** What stands before the address of the support. */
  readonly support: string
  /** What stands before the request id. */
  readonly request: string
}

/** The pages of which the error alone says what happened. */
export type RefusalPage = Exclude<PageName, 'sign-in-failed' | 'signed-out' | 'sign-out'>

export interface Heading {
  readonly title: string
  readonly text: string
}
