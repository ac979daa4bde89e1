// Styles for the terminal's code. It makes them out of text, which the page's own
// policy forbids: style elements need the page's nonce, and what it writes into
// style attributes, true colours above all, has to be set property by property.
//
// It knows an option for another document, but does not use it everywhere, so it
// is the page's document that makes such elements, once terminals are loaded.

/** Lets elements be made whose styles the page's policy allows. */
export function allowStyles(page: Document): void {
  const nonce = page.querySelector<HTMLElement>('meta[property=csp-nonce], script[nonce]')?.nonce ?? '';
  const create = page.createElement.bind(page);
  page.createElement = (name: string, options?: ElementCreationOptions) => {
    const made = create(name, options);
    if (name === 'style') made.nonce = nonce;
    if (name === 'span') made.setAttribute = set;
    return made;
  };
}

function set(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}
