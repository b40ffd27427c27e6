/** What `gatehouse import` writes where it could not know, and `gatehouse check` warns of. */
export const placeholder = 'change-me'
