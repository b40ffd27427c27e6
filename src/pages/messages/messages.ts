import type { ErrorCode } from '../../core/error-codes.ts'
import type { PageAction, PageName } from '../../core/page-names.ts'

/**
 * The texts of all pages in one language. A new error code or action needs a text in each language.
 */
export interface Messages {
  /** The direction of the script: `dir` of HTML. */
  readonly dir: 'ltr' | 'rtl'
  /**
   * What happened: the heading of a refusal, or the text of a page about a failed sign-in.
   */
  readonly errors: Readonly<Record<ErrorCode, string>>
  /** What the person can do. */
  readonly advice: Readonly<Record<RefusalPage, string>>
  readonly actions: Readonly<Record<PageAction, string>>
  /** What a person can do where the session has to be bound to the device. */
  readonly deviceBinding: string
  /** The text during maintenance. `{when}` is a time such as "in 30 minutes". */
  readonly maintenance: string
  /** The text for a fault that lasts until the operator changes the configuration. */
  readonly misconfigured: string
  /** The text of the sign-in page in a frame. */
  readonly signInFromFrame: string
  /** The person is signed in, but has to authenticate more strongly, or again. */
  readonly stepUp: { readonly advice: string; readonly unmet: string }
  readonly signInFailed: string
  readonly signedIn: string
  /** The end of a sign-in in another window. */
  readonly signedInAgain: Heading
  readonly chooseProvider: Heading
  readonly signedOut: Heading
  readonly confirmSignOut: Heading
  readonly stillSignedIn: Heading
  readonly sessionEnded: Heading
  /** A page that redirects. */
  readonly redirecting: Heading & { readonly link: string }
  readonly kept: KeptMessages
  readonly notKept: NotKeptMessages
  readonly sessionList: SessionListMessages
  readonly applicationSignIn: ApplicationSignInMessages
  readonly keys: KeyMessages
  /** The person has too many sessions. The title is that of the error. */
  readonly tooManySessions: string
  /** The session has ended because the person has signed in elsewhere. */
  readonly signedInElsewhere: Heading
  readonly notice: NoticeMessages
  readonly tooManyCookies: Heading & { readonly clear: string }
  /** The text before the address of the support. */
  readonly support: string
  /** The text before the request ID. */
  readonly request: string
  /** Before the name of a rule. */
  readonly rule: string
}

/** The pages that are only about an error. */
export type RefusalPage = Exclude<PageName, 'sign-in-failed' | 'signed-out' | 'sign-out'>

export interface Heading {
  readonly title: string
  readonly text: string
}

/** What kind of content a form has. */
export type ContentKind = 'form' | 'form_with_files' | 'text' | 'data' | 'empty'

/** Why a form was not kept while its person signs in. `unavailable`: the error says what is. */
export type NotKept =
  'off' | 'frame' | 'cross_site' | 'content_type' | 'unknown_person' | 'too_large' | 'too_many' | 'full' | 'unavailable'

/** The pages about a form that was kept while its person signed in. */
interface KeptMessages {
  /** Asks whether to send it. `{to}` in the text is its address. */
  readonly ask: Heading
  readonly kinds: Readonly<Record<ContentKind, string>>
  readonly send: string
  readonly decline: string
  /** It is being sent, or it is unknown whether it was. */
  readonly sending: Heading
  /** It was sent before, so it is not sent. */
  readonly sent: Heading
  /** It is not there any more. */
  readonly gone: Heading
  /** Another person has signed in. */
  readonly discarded: Heading
}

/** The page about a form that was neither sent nor kept. */
interface NotKeptMessages {
  readonly title: string
  readonly reasons: Readonly<Record<Exclude<NotKept, 'unavailable'>, string>>
  readonly advice: string
}

/** The page where people see their sessions. */
export interface SessionListMessages extends Heading {
  /** Marks the session of this browser. */
  readonly current: string
  readonly unknownBrowser: string
  /** `{browser}` and `{system}` are names, such as `Firefox 140` and `Windows`. */
  readonly browserOn: string
  readonly signedInAt: string
  readonly lastUsedAt: string
  /** The IP address of the sign-in. */
  readonly address: string
  /** A session that is bound to its device: the name and the value of this fact. */
  readonly protection: string
  readonly bound: string
  /** The text of a button. Its full name, `endNamed`, has to contain it (WCAG 2.5.3). */
  readonly end: string
  /** `{browser}` is the heading of the session. */
  readonly endNamed: string
  readonly endOthers: string
  readonly more: string
  /** What has happened: one session or several have ended, or none. */
  readonly ended: string
  readonly othersEnded: string
  readonly gone: string
}

/**
 * The page that asks for the password of an application, and the list of these passwords. `{to}` is
 * the application, and `{when}` a time such as "in 90 days".
 */
export interface ApplicationSignInMessages extends Heading {
  /** Where the person can remove the password. */
  readonly where: string
  readonly refused: string
  readonly username: string
  readonly password: string
  readonly send: string
  /** The person uses the form of the application. */
  readonly decline: string
  /** The heading of the list. */
  readonly kept: string
  /** The text of a button. Its full name, `removeNamed`, has to contain it (WCAG 2.5.3). */
  readonly remove: string
  readonly removeNamed: string
}

/** The part of that page about the keys of programs, and the page with a new one. */
export interface KeyMessages extends Heading {
  /** The application that a key is for. */
  readonly upstream: string
  readonly madeAt: string
  readonly unused: string
  readonly endsAt: string
  /** The text of a button. Its full name, `endNamed`, has to contain it. */
  readonly end: string
  /** `{name}` is the name of the key. */
  readonly endNamed: string
  readonly endAll: string
  /** The name that the person gives to a key. */
  readonly name: string
  readonly make: string
  /** `{names}` are the applications for which the person has as many keys as is allowed. */
  readonly full: string
  readonly made: Heading
  readonly key: string
  /** Where the application is. */
  readonly address: string
  /** A header in which the program may send the key. */
  readonly header: string
  /** The text of the link to the page with all keys. */
  readonly back: string
  readonly ended: string
  readonly allEnded: string
}

/** The notice in the pages of applications about the end of the session. */
export interface NoticeMessages {
  /** The name of the notice, for screen readers. */
  readonly label: string
  /** `{n}` is the number of minutes. */
  readonly expiring: string
  readonly stay: string
  /** Opens the sign-in in another window. */
  readonly renew: string
  readonly ended: string
  /** The same, because the person has signed in elsewhere. */
  readonly endedElsewhere: string
  /** Another person has signed in. */
  readonly changed: string
  readonly reload: string
  readonly close: string
}
