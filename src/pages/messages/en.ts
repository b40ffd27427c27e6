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
  deviceBinding:
    'Your browser has not bound it. Sign out, and sign in again with a browser that can do this, such as a current Chrome or Edge on a computer with a security chip.',
  misconfigured:
    'Trying again does not help: the operators of this site have to change its configuration. Please tell them.',
  signInFromFrame: 'Your session has ended, or you are not signed in. The sign-in opens in the whole window.',
  stepUp: {
    advice: 'It needs a stronger or more recent sign-in than yours.',
    unmet: 'Try again, or sign in with another account. If you were signed in before, you still are.',
  },
  signInFailed: 'You are not signed in.',
  signedIn: 'You are signed in.',
  signedInAgain: { title: 'You are signed in again.', text: 'You can close this window.' },
  chooseProvider: { title: 'Where do you want to sign in?', text: 'Choose where you have an account.' },
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
  kept: {
    ask: {
      title: 'Do you want to send what you entered?',
      text: 'You had to sign in before it could be sent to {to}. What you entered was kept. It has not been sent yet.',
    },
    kinds: {
      form: 'Form',
      form_with_files: 'Form that may contain files',
      text: 'Text',
      data: 'Data (JSON)',
      empty: 'Form without content',
    },
    send: 'Send now',
    decline: 'Do not send',
    sending: {
      title: 'What you entered may have been sent already.',
      text: 'It is being sent, or sending it was interrupted. Check in the application whether it has arrived. It is not sent a second time.',
    },
    sent: { title: 'What you entered has already been sent.', text: 'It is not sent a second time.' },
    gone: {
      title: 'There is nothing to send any more.',
      text: 'What you entered was sent or discarded, or its time was over.',
    },
    discarded: {
      title: 'What another person entered was discarded.',
      text: 'Another person had filled in a form in this browser. It was not sent.',
    },
  },
  notKept: {
    title: 'What you entered was not sent and not saved.',
    reasons: {
      off: 'You have to sign in first.',
      frame: 'You have to sign in first, and this page is part of another page.',
      cross_site: 'You have to sign in first, and a page of another site sent it.',
      content_type: 'You have to sign in first, and content of this type cannot be saved.',
      unknown_person: 'You were not signed in, so it is unclear whose it is.',
      too_large: 'You have to sign in again, and it is too large to be saved.',
      too_many: 'You have to sign in again, and too many of your forms are saved already.',
      full: 'You have to sign in again, and there is no room to save it.',
      store: 'Sign-in and sessions are not available right now.',
    },
    advice: 'Go back: your browser may still have it. Copy what you need before you sign in.',
  },
  notice: {
    label: 'Your session',
    expiring: 'You will be signed out in {n} min.',
    stay: 'Stay signed in',
    renew: 'Sign in again',
    ended: 'You are signed out. Sign in again in a new window: this page stays as it is.',
    changed: 'You are now signed in as somebody else. Reload this page.',
    reload: 'Reload',
    close: 'Close',
  },
  support: 'Need help?',
  request: 'Request ID',
  rule: 'Rule',
}
