import { errorCodes, errorRow } from '../../core/error-codes.ts'
import type { Messages } from './messages.ts'

export const en: Messages = {
  dir: 'ltr',
  errors: Object.fromEntries(errorCodes.map((code) => [code, errorRow(code).text])) as Messages['errors'],
  advice: {
    'bad-request': 'Go back and try again. If a link brought you here, it may be incomplete.',
    'sign-in-required': 'This page is for people who are signed in.',
    'wrong-address': 'The address of this application is',
    forbidden: 'If another account of yours may open this page, sign in with that one. Otherwise ask for access.',
    'not-found': 'The link may be wrong or out of date.',
    'too-many-requests': 'Please wait a moment, then try again.',
    unavailable: 'Please try again in a moment.',
  },
  actions: {
    home: 'Go to the start page',
    sign_in: 'Sign in',
    other_account: 'Sign in with another account',
    retry: 'Try again',
    sign_out: 'Sign out',
    stay_signed_in: 'No, stay signed in',
    right_address: 'Go to the right address',
  },
  misconfigured:
    'Trying again does not help: the operators of this site have to change its configuration. Please tell them.',
  signInFromFrame: 'Your session has ended, or you are not signed in. The sign-in opens in the whole window.',
  signInFailed: 'You are not signed in.',
  signedIn: 'You are signed in.',
  signedOut: { title: 'You are signed out.', text: 'You may close this window now.' },
  confirmSignOut: {
    title: 'Do you want to sign out?',
    text: 'Another site asked to sign you out. Nothing has happened yet.',
  },
  stillSignedIn: {
    title: 'You are still signed in.',
    text: 'This page was opened without signing out here first.',
  },
  sessionEnded: { title: 'You are signed out.', text: 'Your session here has ended.' },
  redirecting: { title: 'One moment …', text: 'You are being redirected.', link: 'Continue' },
  support: 'Need help?',
  request: 'Request ID',
}
