// What a screen has to pass in both themes.
import type { Page } from '@playwright/test';
import { accessible } from './harness';

export async function accessibleInBoth(page: Page): Promise<void> {
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    await accessible(page);
  }
}

/** Looks at a screen on a phone: nothing is reached by scrolling sideways. */
export async function fitsPhone(page: Page, expect: typeof import('./harness').expect): Promise<void> {
  const before = page.viewportSize()!;
  await page.setViewportSize({ width: 390, height: 780 });
  await expect.poll(() => page.evaluate(wide)).toEqual([]);
  await accessible(page);
  await page.setViewportSize(before);
}

function wide(): string[] {
  const all = [...document.querySelectorAll('main, main *, dialog[open], dialog[open] *')];
  const scrolls = (element: Element) => {
    for (let at: Element | null = element; at; at = at.parentElement) {
      if (/auto|scroll/.test(getComputedStyle(at).overflowX) && !at.matches('main, dialog')) return true;
    }
    return false;
  };
  const found = all.filter((element) => {
    const { right, width } = element.getBoundingClientRect();
    return width > 1 && right > innerWidth + 1 && !scrolls(element);
  });
  return found.map((element) => element.outerHTML.slice(0, 120));
}
