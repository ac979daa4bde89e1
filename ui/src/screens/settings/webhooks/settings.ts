// What a form holds, and what the server is asked for.
import type { Topic, WebhookFormat, WebhookView, WebhookPatch } from '../../../api/schema';

export interface Draft {
  url: string;
  label: string;
  format: WebhookFormat;
  token: string;
  delay: number;
  atOnce: boolean;
  quiet: boolean;
  from: string;
  to: string;
  everywhere: boolean;
  sandboxes: string[];
  topics: Topic[];
  long: number;
  server: boolean;
}

/** What a form begins with: what there is, or what is usual. */
export function draft(there?: WebhookView): Draft {
  return {
    url: '',
    label: there?.label ?? '',
    format: there?.format ?? 'json',
    token: '',
    delay: there?.delay_seconds ?? 30,
    atOnce: there?.high_risk_at_once ?? true,
    quiet: !!there?.quiet,
    from: there?.quiet?.from ?? '22:00',
    to: there?.quiet?.to ?? '07:00',
    everywhere: !there?.sandboxes,
    sandboxes: there?.sandboxes ?? [],
    topics: there?.topics ?? ['approval.waiting'],
    long: there?.long_minutes ?? 10,
    server: false,
  };
}

/** What is wished for; quiet hours are by the clock of whoever sets them. */
export function wish(from: Draft, zone: string): Partial<WebhookPatch> {
  return {
    ...(from.url.trim() && { url: from.url.trim() }),
    ...(from.format === 'ntfy' && from.token.trim() && { secret: from.token.trim() }),
    label: from.label.trim(),
    format: from.format,
    delay_seconds: from.delay,
    high_risk_at_once: from.atOnce,
    ...(from.quiet ? { quiet: { from: from.from, to: from.to, zone } } : { never_quiet: true }),
    ...(from.everywhere ? { everywhere: true } : { sandboxes: [...from.sandboxes] }),
    topics: [...from.topics],
    long_minutes: from.long,
  };
}
