/** What was measured, by what it is. */
export type Facts = Map<string, number>
