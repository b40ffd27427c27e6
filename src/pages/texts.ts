import { readFileSync } from 'node:fs'

const textOf = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

/** The scripts of pages. In the program, .ci/bundle-rules.mjs replaces this module by the texts. */
export const texts = {
  /**
   * Shows a notice before the session ends, when it has ended, and when another person has signed
   * in. One tab is connected to the event stream and tells the others, because browsers open few
   * connections to a host. It needs no `unsafe-inline` and no `eval`: the notice is in a shadow
   * tree with a constructed style sheet.
   */
  notice: textOf('./notice.js'),
  /**
   * Declares `signInForFrame`, for the click on a link to the sign-in in a frame of another site. A
   * window signs the person in, and gives a code to the frame (see `frameSession`). The frame
   * accepts the code only from a page of this origin in that window. The code works only with the
   * secret, which the frame keeps. If the browser blocks the window, the browser follows the link.
   */
  signInForFrame: textOf('./sign-in-for-frame.js'),
  frameSignIn: textOf('./frame-sign-in.js'),
}
