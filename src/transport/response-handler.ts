import type { Dispatcher } from 'undici'

/** A part of an answer that is no longer, in bytes, is short. */
export const shortBytes = 8 * 1024

/** Takes an answer part by part: undici's handler, and what takes a part more cheaply. */
export interface AnswerHandler extends Dispatcher.DispatchHandler {
  /** A short part, as text in which a character is a byte. */
  onResponseText(controller: Dispatcher.DispatchController, text: string): void
  /**
   * A long part, in memory that is lent: other answers are read into it once `giveBack` is called.
   * Without that it is never used again.
   */
  onResponseLoan(controller: Dispatcher.DispatchController, part: Buffer, giveBack: () => void): void
}
