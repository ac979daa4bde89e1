/** One entry of the audit, as the server tells it. */
export interface Entry {
  seq: number;
  time: string;
  kind: string;
  actor: string;
  detail: Record<string, unknown>;
  prev: string;
  hash?: string;
  /** Which steps of the run's life it tells of. */
  steps?: string[];
}

/** What an entry says beyond its kind, in a few words. */
export function gist({ kind, detail }: Entry): string {
  const said = (name: string) => (detail[name] == null ? '' : String(detail[name]));
  switch (kind) {
    case 'run.started':
      return [said('verdict') && `verdict ${said('verdict')}`, said('approved_by') && `approved by ${said('approved_by')}`, said('cwd')]
        .filter(Boolean)
        .join(' · ');
    case 'run.ended':
      return [said('state').replace('_', ' '), said('exit_code') && `exit ${said('exit_code')}`, said('reason')]
        .filter(Boolean)
        .join(' · ');
    default:
      return said('reason') || said('summary') || said('text') || said('command');
  }
}
