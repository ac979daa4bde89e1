// Where the keyboard is when something appears.

/** Of a dialog: the element that has the focus when it opens, or as soon as it
 * is there. */
export function first(node: HTMLElement): void {
  if (node.closest('dialog')?.open) node.focus();
  // The dialog looks for this when it is shown.
  else node.setAttribute('autofocus', '');
}
