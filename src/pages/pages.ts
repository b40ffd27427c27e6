import type { Language, PagesConfig } from '../config/model.ts'
import { type ErrorCode, errorRow } from '../core/error-codes.ts'
import type { PageAction } from '../core/page-template.ts'
import { otherAccountUrl, signInUrl } from '../core/return-to.ts'
import { type Response, withHeaders } from '../http/response.ts'
import { chooseLanguage } from './language.ts'
import { Look, type Spoken } from './look.ts'
import { messages } from './messages.ts'
import { type Heading, type Messages } from './messages/messages.ts'
import { problem, refusalHeaders, type ProblemOptions } from './problem.ts'

/** What a page has to know of the request that it answers. */
export interface Visit {
  /** By what an operator finds the request in the log. */
  readonly requestId: string
  readonly acceptLanguage: string | undefined
  /** The path of the start page of the host that was asked for; absent: `/`. */
  readonly home?: string | undefined
}

/** What a refusal has to know of a request; the default for everything else. */
export function visitOf({ requestId, acceptLanguage, home, isFrame }: Visit & { readonly isFrame: boolean }) {
  return { requestId, acceptLanguage, home, inFrame: isFrame, asPage: false }
}

export interface RefusalOptions extends ProblemOptions, Visit {
  /** A page load in a browser gets a page; everything else a problem document. */
  readonly asPage: boolean
  /**
   * A page load in a frame gets a page that may be shown in a frame of its own origin, and whose
   * links open the whole window.
   */
  readonly inFrame?: boolean | undefined
  /** The path and query that the person wanted to see: signing in leads back there. */
  readonly returnTo?: string | undefined
  /** The URL of the page at the host where the person can sign in; for ERR_WRONG_HOST. */
  readonly rightAddress?: string | undefined
  /** Where to try again. Absent: the URL that was asked for. */
  readonly retry?: string | undefined
}

/** All that a visitor sees of one gateway, in the visitor's language. */
export class Pages {
  readonly #language: Language
  readonly #reservedPrefix: string
  readonly #look: Look

  constructor(config: PagesConfig, reservedPrefix: string) {
    this.#language = config.language
    this.#reservedPrefix = reservedPrefix
    this.#look = new Look(config)
  }

  /** The response to a request that is refused: a page, or a problem document. */
  refusal(code: ErrorCode, options: RefusalOptions): Response {
    if (!options.asPage && options.inFrame !== true) return problem(code, options)
    const { status } = errorRow(code)
    return { ...withHeaders(this.#refusalPage(code, status, options), refusalHeaders(status, options)), code }
  }

  /**
   * After signing out. It links to the next sign-in and does not start it: whoever signed out wants
   * to be signed out.
   */
  signedOut(visit: Visit): Response {
    const spoken = this.#spoken(visit, ({ signedOut }) => signedOut)
    return this.#look.page({ ...spoken, page: 'signed-out', urls: this.#urls({ home: visit.home }) })
  }

  /**
   * A button that signs out. `asked_elsewhere`: another site may have sent the browser here;
   * `still_signed_in`: the browser came as if it had signed out. From the button it is sent on
   * through the origins `goesOnTo`, which are the provider's.
   */
  signOut(why: 'asked_elsewhere' | 'still_signed_in', goesOnTo: readonly string[], visit: Visit): Response {
    const spoken = this.#spoken(visit, ({ confirmSignOut, stillSignedIn }) =>
      why === 'asked_elsewhere' ? confirmSignOut : stillSignedIn,
    )
    return this.#look.page({ ...spoken, page: 'sign-out', urls: this.#urls({ home: visit.home }), goesOnTo })
  }

  /**
   * A page that goes on to `location` by itself. What it loads is asked for by a page of ours: a
   * `Strict` cookie comes along, which does not travel with a link on another site or a redirect
   * that began there.
   */
  goOn(location: string, visit: Visit, { signedIn = false } = {}): Response {
    const spoken = this.#spoken(visit, ({ goOn, signedIn: title }) => (signedIn ? { ...goOn, title } : goOn))
    const page = this.#look.builtIn(spoken, [{ href: location, text: spoken.said.goOn.link }])
    return withHeaders(page, { Refresh: `0; url=${location}` })
  }

  /**
   * What a page of the provider has in a frame when a session has ended; hardly anybody sees it.
   */
  sessionOver(framedBy: readonly string[], visit: Visit): Response {
    return this.#look.builtIn(
      this.#spoken(visit, ({ sessionOver }) => sessionOver),
      [],
      { framedBy },
    )
  }

  #refusalPage(code: ErrorCode, status: number, options: RefusalOptions): Response {
    const { page } = errorRow(code)
    const { inFrame, rightAddress = '' } = options
    if (page !== 'sign-in-failed') {
      const say = ({ errors, advice, signInFromFrame, misconfigured }: Messages) => ({
        title: errors[code],
        text:
          inFrame === true && page === 'sign-in-required'
            ? signInFromFrame
            : code === 'ERR_LOOP'
              ? misconfigured
              : advice[page] + addressOf(rightAddress),
      })
      return this.#look.page({ ...this.#spoken(options, say, status), page, urls: this.#urls(options), inFrame })
    }
    const say = ({ signInFailed, errors }: Messages) => ({ title: signInFailed, text: errors[code] })
    const urls = {
      ...this.#urls(options),
      retry: signInUrl(this.#reservedPrefix, options.returnTo),
      // Nobody is signed in here; at the provider somebody may be, who would be taken again without
      // being asked.
      other_account: signInUrl(this.#reservedPrefix, options.returnTo, 'login'),
    }
    return this.#look.page({ ...this.#spoken(options, say, status), page, urls, inFrame })
  }

  #spoken({ acceptLanguage, requestId }: Visit, say: (said: Messages) => Heading, status = 200): Spoken {
    const language = chooseLanguage(acceptLanguage, this.#language)
    const said = messages[language]
    return { language, said, status, requestId, ...say(said) }
  }

  #urls({ home = '/', returnTo, retry, rightAddress }: Partial<RefusalOptions>): Readonly<Record<PageAction, string>> {
    const prefix = this.#reservedPrefix
    return {
      home,
      // Without return_to a sign-in ends at "/".
      sign_in: signInUrl(prefix, returnTo ?? (home === '/' ? undefined : home)),
      other_account: otherAccountUrl(prefix, returnTo),
      // The empty reference is the URL that was asked for (RFC 3986 §4.4).
      retry: retry ?? '',
      sign_out: `${prefix}sign-out`,
      stay_signed_in: home,
      right_address: rightAddress ?? '/',
    }
  }
}

/** The host of a URL, to be written behind a sentence that introduces it. */
function addressOf(url: string): string {
  return url === '' ? '' : ` ${new URL(url).host}`
}
