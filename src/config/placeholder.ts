/**
 * The value that `gatehouse import` writes for what it cannot know. `gatehouse check` warns of it.
 */
export const placeholder = 'change-me'
