import type { Language, PagesConfig } from '../config/model/pages.ts'
import { type ErrorCode, errorRow } from '../core/error-codes.ts'
import type { PageAction, PageName } from '../core/page-names.ts'
import { clearCookiesUrl, keptUrl, otherAccountUrl, signInUrl } from '../core/return-to.ts'
import type { SessionList } from '../core/session-lists.ts'
import type { HeaderView } from '../http/forwarded.ts'
import { type RequestFacts, returnPage } from '../http/request-facts.ts'
import { type Response, withHeaders } from '../http/response.ts'
import { grpcRefusal } from './grpc-refusal.ts'
import { keyListHtml, shownKeyHtml, type ShownKeys, type ShownNewKey } from './key-list.ts'
import { chooseLanguage, chooseLocale } from './language.ts'
import { messagesByLanguage } from './messages.ts'
import type { ContentKind, Heading, Messages, NotKept } from './messages/messages.ts'
import { type FullPage, PageRenderer, type PageText } from './page-renderer.ts'
import { escape } from './page.ts'
import { problem, refusalHeaders, type ProblemOptions } from './problem.ts'
import { codeScript, frameSignInScript, type ScriptScope, sessionScriptResponse, signedInScript } from './scripts.ts'
import { type ListForms, secretListHtml, sessionListHtml, type ShownSecret, signInFormHtml } from './session-list.ts'

/** What a page needs to know about the request. */
export interface PageContext {
  /** The ID of the request in the log. */
  readonly requestId: string
  readonly acceptLanguage: string | undefined
  /** The path of the start page of the requested host. Absent: `/`. */
  readonly home?: string | undefined
}

/** The options of a refusal for a request, with defaults. */
export function pageContext({ requestId, acceptLanguage, home, isFrame }: PageContext & { readonly isFrame: boolean }) {
  return { requestId, acceptLanguage, home, inFrame: isFrame, asPage: false }
}

export interface RefusalOptions extends ProblemOptions, PageContext {
  /** Whether the response is a page (for a page load in a browser) or a problem document. */
  readonly asPage: boolean
  /** The request is a call of gRPC. The response has this media type. */
  readonly grpcType?: string | undefined
  /**
   * A page load in a frame: the page may be shown in a frame of its own origin, and its links open
   * in the whole window.
   */
  readonly inFrame?: boolean | undefined
  /** The path and query to return to after the sign-in. */
  readonly returnTo?: string | undefined
  /** The URL of the page at the host where the person can sign in, for ERR_WRONG_HOST. */
  readonly rightAddress?: string | undefined
  /** The URL for another try. Absent: the requested URL. */
  readonly retry?: string | undefined
  /** The reference of a kept request. Another try, or a sign-in, leads to the page about it. */
  readonly kept?: string | undefined
  /** When the application is back after maintenance, in ms from now. */
  readonly retryAfterMs?: number | undefined
  /** The refused request is a form whose content is lost, for this reason. */
  readonly notKept?: NotKept | undefined
}

/**
 * The options that follow from the facts of a refused request. `home`: the start page of its host.
 */
export function refusalFor(facts: RequestFacts, headers: HeaderView, home = '/') {
  const returnTo = returnPage(facts, headers)
  // A link to the URL of a form would load it with GET.
  const retry = facts.method === 'POST' ? (returnTo ?? home) : undefined
  return { asPage: facts.isPage, inFrame: facts.isFrame, returnTo, home, retry }
}

/** What the page about a kept request shows. It never shows the content. */
export interface KeptPageContent {
  readonly reference: string
  /** The path where the person declines. */
  readonly decline: string
  /** The URL that it is sent to. */
  readonly to: URL
  readonly kind: ContentKind
  readonly bytes: number
  /** The one field, with which the button that sends it marks its request. */
  readonly mark: Readonly<Record<string, string>>
}

/** What the page shows that asks for the password of an application. */
export interface ApplicationSignInPage {
  /** What the application is called. */
  readonly title: string
  /** The path that gets the form, with these hidden fields. */
  readonly action: string
  readonly fields: Readonly<Record<string, string>>
  /** The name of the person at the application. Absent: the page asks for it. */
  readonly username: string | undefined
  /** The application has refused the password before. */
  readonly wasRefused: boolean
  readonly rememberMs: number
  /** The page where the person can remove the password. Absent: people have no such page. */
  readonly sessions: string | undefined
}

/** What a form on the page with the sessions has done. */
export type SessionsOutcome = 'ended' | 'othersEnded' | 'gone' | 'keyEnded' | 'keysEnded'

/** The pages of a gateway, in the language of the browser. */
export class Pages {
  readonly #embeddedIn: readonly string[]
  readonly #language: Language
  readonly #reservedPrefix: string
  readonly #renderer: PageRenderer

  /** @param embeddedIn the origins of other sites whose pages show the applications in a frame */
  constructor(config: PagesConfig, reservedPrefix: string, embeddedIn: readonly string[] = []) {
    this.#embeddedIn = embeddedIn
    this.#language = config.language
    this.#reservedPrefix = reservedPrefix
    this.#renderer = new PageRenderer(config)
  }

  /** The response to a refused request: a page, a problem document, or a status of gRPC. */
  refusal(code: ErrorCode, options: RefusalOptions): Response {
    if (options.grpcType !== undefined) return grpcRefusal(code, options.grpcType, options)
    if (!options.asPage && options.inFrame !== true) return problem(code, options)
    const { status } = errorRow(code)
    return { ...withHeaders(this.#refusalPage(code, status, options), refusalHeaders(status, options)), code }
  }

  /**
   * The page after a sign-out. It links to the sign-in, but does not start it, because the person
   * has just signed out.
   */
  signedOut(context: PageContext): Response {
    const text = this.#textOf(context, ({ signedOut }) => signedOut)
    return this.#renderer.page({ ...text, page: 'signed-out', urls: this.#urls({ home: context.home }) })
  }

  /**
   * A page with a sign-out button. `asked_elsewhere`: another site may have sent the browser here.
   * `still_signed_in`: the browser opened the page for signed-out people. The button may redirect
   * to the origins `formTargets`, which are those of the provider. `prefix` is the path of the
   * endpoints of the provider.
   */
  signOut(
    why: 'asked_elsewhere' | 'still_signed_in',
    { prefix, formTargets }: { readonly prefix: string; readonly formTargets: readonly string[] },
    context: PageContext,
  ): Response {
    const text = this.#textOf(context, ({ confirmSignOut, stillSignedIn }) =>
      why === 'asked_elsewhere' ? confirmSignOut : stillSignedIn,
    )
    const urls = { ...this.#urls({ home: context.home }), sign_out: `${prefix}sign-out` }
    return this.#renderer.page({ ...text, page: 'sign-out', urls, formTargets })
  }

  /** The page where a person chooses between providers. `url` begins the sign-in at one of them. */
  chooseProvider(choices: readonly { readonly title: string; readonly url: string }[], context: PageContext): Response {
    return this.#renderer.builtIn(
      this.#textOf(context, (messages) => messages.chooseProvider),
      choices.map(({ title, url }) => ({ href: url, text: title })),
      { areEqual: true },
    )
  }

  /**
   * A page that redirects to `location`. Its request is same-site, so browsers send a `Strict`
   * cookie. They do not after a link on another site or a redirect that began there.
   */
  redirectPage(location: string, context: PageContext, { signedIn = false } = {}): Response {
    const text = this.#textOf(context, ({ redirecting, signedIn: title }) =>
      signedIn ? { ...redirecting, title } : redirecting,
    )
    const page = this.#renderer.builtIn(text, [{ href: location, text: text.messages.redirecting.link }])
    return withHeaders(page, { Refresh: `0; url=${location}` })
  }

  /**
   * A page that posts a form to a URL of another site at once (HTML §4.10.21). Without a script,
   * the person does that.
   */
  formPost(url: string, fields: Readonly<Record<string, string>>, context: PageContext): Response {
    const text = this.#textOf(context, ({ redirecting }) => redirecting)
    // The other site may redirect the browser anywhere after the form.
    return this.#renderer.builtIn(text, [{ href: url, text: text.messages.redirecting.link, post: { fields } }], {
      formTargets: ['*'],
      script: 'document.forms[0].submit()',
    })
  }

  /**
   * The page for a front-channel logout frame after the session has ended. Few people see it.
   */
  sessionEnded(framedBy: readonly string[], context: PageContext): Response {
    return this.#renderer.builtIn(
      this.#textOf(context, ({ sessionEnded }) => sessionEnded),
      [],
      { framedBy },
    )
  }

  /**
   * The end of a sign-in that an open page has started in another window. Tells the open pages, and
   * closes the window if the browser lets it. Without a script, the person does that.
   */
  signedInAgain(context: PageContext): Response {
    const text = this.#textOf(context, ({ signedInAgain }) => signedInAgain)
    const links = [{ href: context.home ?? '/', text: text.messages.actions.home }]
    return this.#renderer.builtIn(text, links, { script: signedInScript })
  }

  /** The same for a frame: the page gives the code to the frame that has opened the window. */
  signedInForFrame(code: string, prefix: string, context: PageContext): Response {
    const text = this.#textOf(context, ({ signedInAgain }) => signedInAgain)
    return this.#renderer.builtIn(text, [], { script: codeScript(code, prefix) })
  }

  /**
   * The page for a request with a header section that is too large. Its button removes the cookies.
   */
  tooManyCookies(context: PageContext): Response {
    const text = this.#textOf(context, (messages) => messages.tooManyCookies, 431)
    const button = {
      href: clearCookiesUrl(this.#reservedPrefix),
      text: text.messages.tooManyCookies.clear,
      post: { fields: {} },
    }
    return { ...this.#renderer.builtIn(text, [button], { formTargets: [] }), code: 'ERR_HEADERS_TOO_LARGE' }
  }

  /** The script that shows a notice about the end of the session, in the pages of `scope`. */
  sessionScript(
    { acceptLanguage }: Pick<PageContext, 'acceptLanguage'>,
    scope: ScriptScope,
    ifNoneMatch: string | undefined,
  ): Response {
    const lang = chooseLanguage(acceptLanguage, this.#language)
    const { dir, notice } = messagesByLanguage[lang]
    const isEmbedded = this.#embeddedIn.length > 0
    return sessionScriptResponse({ ...notice, lang, dir }, this.#reservedPrefix, { ...scope, isEmbedded }, ifNoneMatch)
  }

  /** Asks the person whether to send a kept request. */
  kept(content: KeptPageContent, context: PageContext): Response {
    const { reference, decline: declineUrl, to, kind, bytes, mark } = content
    const address = to.host + to.pathname
    const locale = this.#localeOf(context)
    const text = this.#textOf(context, ({ kept: { ask, kinds } }) => ({
      title: ask.title,
      text: `${ask.text.replace('{to}', () => address)} ${kinds[kind]} (POST${bytes > 0 ? `, ${sizeText(bytes, locale)}` : ''})`,
    }))
    const { send, decline } = text.messages.kept
    const buttons = [
      // Browsers send the field as it is, in a request that no form of an application looks like.
      { href: to.href, text: send, post: { fields: mark, type: 'text/plain' } },
      { href: declineUrl, text: decline, post: { fields: { id: reference } } },
    ] as const
    // The application may redirect the browser anywhere after the form.
    return this.#renderer.builtIn(text, buttons, { formTargets: ['*'] })
  }

  /**
   * Asks the person for the name and password at an application, and says what becomes of them. The
   * person may leave that to the form of the application.
   */
  applicationSignIn(content: ApplicationSignInPage, context: PageContext): Response {
    const { title: to, action, fields, username: known, wasRefused, rememberMs, sessions } = content
    const days = fromNow(rememberMs, this.#localeOf(context))
    const named = (text: string) => text.replaceAll('{to}', () => to).replace('{when}', () => days)
    const text = this.#textOf(context, ({ applicationSignIn: { title, text } }) => ({
      title: named(title),
      text: named(text),
    }))
    const { username, password, send, decline, refused, where } = text.messages.applicationSignIn
    const links = [
      { href: action, text: decline, post: { fields: { ...fields, decline: '1' } } },
      ...(sessions === undefined ? [] : [{ href: sessions, text: text.messages.sessionList.title }]),
    ]
    const labels = { username, password }
    return this.#renderer.builtIn(text, links, {
      // The application may redirect the browser anywhere after the form.
      formTargets: ['*'],
      outcome: wasRefused ? refused : undefined,
      html: [
        ...(sessions === undefined ? [] : [`<p>${escape(where)}</p>`]),
        signInFormHtml({ action, fields, labels, known, send }),
      ].join('\n'),
    })
  }

  /** What became of a kept request, with a link to go on. */
  keptEnd(end: 'sending' | 'sent' | 'gone' | 'discarded', returnTo: string, context: PageContext): Response {
    const text = this.#textOf(context, ({ kept }) => kept[end], end === 'gone' ? 404 : 200)
    return this.#renderer.builtIn(text, [{ href: returnTo, text: text.messages.redirecting.link }])
  }

  /**
   * The sessions of the signed-in person. The button that signs out may redirect to the origins
   * `formTargets`. `prefix` is the path of the endpoints of the provider.
   */
  sessions(
    list: SessionList,
    {
      prefix,
      formTargets,
      outcome,
      secrets = [],
      keys,
    }: {
      readonly prefix: string
      /** The applications for which a password is kept. */
      readonly secrets?: readonly ShownSecret[] | undefined
      readonly formTargets: readonly string[]
      /** What a form has done. Absent: there was none. */
      readonly outcome?: SessionsOutcome | undefined
      readonly keys: ShownKeys
    },
    context: PageContext,
  ): Response {
    const text = this.#textOf(context, ({ sessionList }) => sessionList)
    const { locale, messages } = text
    const outcomes = { ...messages.sessionList, keyEnded: messages.keys.ended, keysEnded: messages.keys.allEnded }
    const ofSessions = listHtml(text, list, { end: `${prefix}sessions`, signOut: `${prefix}sign-out`, fields: {} })
    const ofKeys = keyListHtml(keys, prefix, { locale, texts: messages.keys, list: messages.sessionList })
    return this.#renderer.builtIn(text, [{ href: context.home ?? '/', text: messages.actions.home }], {
      formTargets,
      outcome: outcome && outcomes[outcome],
      html: ofSessions + ofKeys + secretListHtml(secrets, `${prefix}application-sign-in`, messages.applicationSignIn),
    })
  }

  /** A new key of a person. No other page shows it. `prefix`: as above. */
  keyMade(key: ShownNewKey, prefix: string, context: PageContext): Response {
    const text = this.#textOf(context, ({ keys }) => keys.made)
    const { locale, messages } = text
    const html = shownKeyHtml(key, { locale, texts: messages.keys })
    return this.#renderer.builtIn(text, [{ href: `${prefix}sessions`, text: messages.keys.back }], { html })
  }

  /**
   * The page for a person who has too many sessions to sign in. Each button ends one of them, and
   * then begins the sign-in at `signIn` again.
   */
  tooManySessions(
    list: SessionList,
    { code, prefix, signIn }: { readonly code: ErrorCode; readonly prefix: string; readonly signIn: string },
    context: PageContext,
  ): Response {
    const { status } = errorRow(code)
    const say = ({ errors, tooManySessions }: Messages) => ({ title: errors[code], text: tooManySessions })
    const text = this.#textOf(context, say, status)
    const { retry, other_account } = text.messages.actions
    const links = [
      { href: signIn, text: retry },
      { href: otherAccountUrl(prefix, undefined), text: other_account },
    ]
    const forms = { end: `${prefix}sessions`, signOut: `${prefix}sign-out`, fields: { sign_in: signIn } }
    return { ...this.#renderer.builtIn(text, links, { formTargets: [], html: listHtml(text, list, forms) }), code }
  }

  /**
   * The page in a browser whose session has ended because its person has signed in elsewhere.
   * `signIn` begins a new sign-in.
   */
  signedInElsewhere(signIn: string, context: PageContext): Response {
    const text = this.#textOf(context, ({ signedInElsewhere }) => signedInElsewhere)
    return this.#renderer.builtIn(text, [{ href: signIn, text: text.messages.actions.sign_in }])
  }

  #refusalPage(code: ErrorCode, status: number, options: RefusalOptions): Response {
    const { page } = errorRow(code)
    const { rightAddress = '', notKept, retryAfterMs = 0 } = options
    const inFrame = options.inFrame === true ? this.#inFrame(page, options) : undefined
    if (notKept !== undefined) {
      const say = ({ errors, notKept: { title, reasons, advice } }: Messages) => ({
        title,
        text: `${notKept === 'unavailable' ? errors[code] : reasons[notKept]} ${advice}`,
      })
      return this.#renderer.page({ ...this.#textOf(options, say, status), page, urls: this.#urls(options), inFrame })
    }
    if (page !== 'sign-in-failed') {
      const textIn = ({ advice, stepUp, signInFromFrame, misconfigured, maintenance, deviceBinding }: Messages) => {
        if (code === 'ERR_STEP_UP') return stepUp.advice
        if (code === 'ERR_LOOP') return misconfigured
        if (code === 'ERR_MAINTENANCE')
          return maintenance.replace('{when}', () => fromNow(retryAfterMs, this.#localeOf(options)))
        if (code === 'ERR_DEVICE_BINDING') return deviceBinding
        if (inFrame !== undefined && page === 'sign-in-required') return signInFromFrame
        return advice[page] + addressOf(rightAddress)
      }
      const say = (messages: Messages) => ({ title: messages.errors[code], text: textIn(messages) })
      return this.#renderer.page({ ...this.#textOf(options, say, status), page, urls: this.#urls(options), inFrame })
    }
    const say = ({ signInFailed, stepUp, errors }: Messages) =>
      code === 'ERR_STEP_UP_UNMET' || code === 'ERR_KEY_NOT_MADE'
        ? { title: errors[code], text: stepUp.unmet }
        : { title: signInFailed, text: errors[code] }
    const { kept, stepUp } = options
    const again = { kept, stepUp }
    const urls = {
      ...this.#urls(options),
      retry: signInUrl(this.#reservedPrefix, options.returnTo, again),
      // The provider may still have a session, so it must ask for the account (`prompt=login`).
      other_account: signInUrl(this.#reservedPrefix, options.returnTo, { ...again, prompt: 'login' }),
    }
    return this.#renderer.page({ ...this.#textOf(options, say, status), page, urls, inFrame })
  }

  /** Pages that show the applications may show this page too. A sign-in opens a window. */
  #inFrame(page: PageName, { home = '/' }: RefusalOptions): FullPage['inFrame'] {
    const isSignIn = page === 'sign-in-required' && this.#embeddedIn.length > 0
    const script = isSignIn ? frameSignInScript(this.#reservedPrefix, home) : undefined
    return { framedBy: ["'self'", ...this.#embeddedIn], script }
  }

  #textOf(
    { acceptLanguage, requestId, rule }: PageContext & Pick<RefusalOptions, 'rule'>,
    say: (messages: Messages) => Heading,
    status = 200,
  ): PageText {
    const language = chooseLanguage(acceptLanguage, this.#language)
    const messages = messagesByLanguage[language]
    const locale = chooseLocale(acceptLanguage, language)
    return { language, locale, messages, status, requestId, rule, ...say(messages) }
  }

  #localeOf({ acceptLanguage }: PageContext): string {
    return chooseLocale(acceptLanguage, chooseLanguage(acceptLanguage, this.#language))
  }

  #urls({
    home = '/',
    returnTo,
    retry,
    rightAddress,
    kept,
    stepUp,
  }: Partial<RefusalOptions>): Readonly<Record<PageAction, string>> {
    const prefix = this.#reservedPrefix
    return {
      home,
      // Without return_to a sign-in ends at "/".
      sign_in: signInUrl(prefix, returnTo ?? (home === '/' ? undefined : home), { kept, stepUp }),
      other_account: otherAccountUrl(prefix, returnTo),
      // The empty reference is the requested URL (RFC 3986 §4.4).
      retry: retry ?? (kept === undefined ? '' : keptUrl(prefix, kept)),
      sign_out: `${prefix}sign-out`,
      stay_signed_in: home,
      right_address: rightAddress ?? '/',
    }
  }
}

function listHtml({ locale, messages }: PageText, list: SessionList, forms: ListForms): string {
  return sessionListHtml(list, forms, { locale, texts: messages.sessionList, signOut: messages.actions.sign_out })
}

/** The host of a URL with a space before it, as the end of a sentence. */
function addressOf(url: string): string {
  return url === '' ? '' : ` ${new URL(url).host}`
}

/** The size of content in a language: `1 byte`, `22 bytes`, `1.5 MB`. */
function sizeText(bytes: number, locale: string): string {
  const [unit, divisor, unitDisplay] =
    bytes < 1000
      ? (['byte', 1, 'long'] as const)
      : bytes < 1_000_000
        ? (['kilobyte', 1000, 'short'] as const)
        : (['megabyte', 1_000_000, 'short'] as const)
  const options = { style: 'unit', unit, unitDisplay, maximumFractionDigits: 1 } as const
  return new Intl.NumberFormat(locale, options).format(bytes / divisor)
}

/** A time as a person says it: `in 30 minutes`. Minutes, hours and days are rounded up. */
function fromNow(ms: number, locale: string): string {
  const minutes = Math.ceil(ms / 60_000)
  const [amount, unit] =
    minutes < 120
      ? ([minutes, 'minute'] as const)
      : minutes < 48 * 60
        ? ([Math.ceil(minutes / 60), 'hour'] as const)
        : ([Math.ceil(minutes / (24 * 60)), 'day'] as const)
  return new Intl.RelativeTimeFormat(locale).format(amount, unit)
}
