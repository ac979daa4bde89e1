// Which rows the inbox shows, in which order, so that nothing moves under a
// pointer or above what somebody reads.
import type { ApprovalView } from '../../api/schema';

export interface Arranged {
  rows: ApprovalView[];
  /** Came in above what is shown: they wait for a press of “2 new ↑”. */
  held: ApprovalView[];
}

/**
 * Puts what waits now into the rows that are there. A row that is closed stays
 * where it is, as it was, until somebody moves on; one that is new and would
 * stand above the shown one is held back.
 */
export function arrange(
  rows: ApprovalView[],
  waiting: ApprovalView[],
  shown: string | undefined,
): Arranged {
  const now = new Map(waiting.map((approval) => [approval.approval_id, approval]));
  const kept = rows.map((row) => now.get(row.approval_id) ?? row);
  const at = kept.findIndex((row) => row.approval_id === shown);
  // Nobody reads anything: what there is, in its order.
  if (at < 0) return { rows: waiting, held: [] };
  const above = kept.slice(0, at + 1);
  const known = new Set(above.map((row) => row.approval_id));
  const place = waiting.findIndex((approval) => approval.approval_id === shown);
  const fresh = waiting.filter((approval) => !known.has(approval.approval_id));
  const wasBelow = new Set(kept.slice(at + 1).map((row) => row.approval_id));
  const held = fresh.filter(
    (approval) =>
      !wasBelow.has(approval.approval_id) && place >= 0 && waiting.indexOf(approval) < place,
  );
  const below = fresh.filter((approval) => !held.includes(approval));
  return { rows: [...above, ...below], held };
}

/** What of a list is about a text that somebody types. */
export function matching(rows: ApprovalView[], filter: string): ApprovalView[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const all = [row.command, row.requested_by, row.agent, row.sandbox, row.summary, row.short_id]
      .join(' ')
      .toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
