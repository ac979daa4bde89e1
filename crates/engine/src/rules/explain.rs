//! What the policy says about a command, as doors show it.

use serde_json::json;
use weighlock_policy::{
    Access, Allows, Facts, Grant, LoadError, Part, PlaceKind, Scope, Subject, Verdict, tokens,
};
use weighlock_walls::Sandbox;

use super::Rules;
use super::judge::{Judged, Where};
use crate::error::Error;
use crate::policy::{self, For};
use crate::principal::{Principal, Right};
use crate::request::Request;
use crate::view::{
    Explanation, GrantView, OptionView, PartView, PolicyView, ReasonView, RuleInForce, RuleView,
    TokenView,
};

/// How many parts are told of. All are judged; nobody reads more.
const MAX_PARTS: usize = 1000;

/// Characters of a part's own text: what is inside of others is in the text of
/// each of them.
const MAX_TEXT: usize = 1000;

impl Rules {
    /// Says what the policy makes of a command; runs nothing. A draft takes the
    /// place of a rule file: which one, and the text.
    pub fn explain(
        &self,
        request: &Request,
        draft: Option<(&str, &str)>,
        who: &Principal,
    ) -> Result<Explanation, Error> {
        request.check()?;
        request.check_profile()?;
        // Who tries a draft is whoever asks, and not whom they stand in for.
        if draft.is_some() {
            who.check(Right::Look)?;
        }
        let draft = draft.map(|(policy, text)| self.read_draft(policy, text));
        let draft = draft.transpose()?;
        let known = self
            .sandboxes
            .find_workplace(request.sandbox.as_deref(), &request.principal)?;
        let sandbox = &known.sandbox;
        let place = self
            .sandboxes
            .open_work_dir(sandbox, request.cwd.as_deref())?;
        let at = Where {
            known: &known,
            place: &place,
            session: request.session.as_deref(),
        };
        let judged = self.judge(request, &at, draft.as_ref())?;
        Ok(judged.explain(request, sandbox))
    }

    /// Returns the policy in force. Judges past commands: not for a thread that
    /// others wait for.
    pub fn describe(&self, hits: bool, who: &Principal) -> Result<PolicyView, Error> {
        who.check(Right::Look)?;
        let in_force = self.policy.current();
        let config = &self.core.config;
        let asker = For {
            agent: None,
            sandbox: "",
            layers: &[],
        };
        let rules = self.policy.rules(&in_force, None, &asker, None);
        // What is tried on nothing is everything there is.
        let rules = rules.decide(Facts::default(), &Subject::default()).tried();
        let mut rules: Vec<RuleInForce> = { rules.into_iter() }
            .map(|tried| RuleInForce {
                rule: rule_view(tried),
                hits: None,
                last_hit: None,
            })
            .collect();
        let looked_at = match hits {
            true => Some(self.count_all(&mut rules, who)?),
            false => None,
        };
        Ok(PolicyView {
            presets: config
                .presets
                .iter()
                .map(|preset| preset.name().into())
                .collect(),
            rules_file: in_force.rules_file(),
            policies: { self.policy.rule_files().into_iter() }
                .map(|file| file.id)
                .collect(),
            rules,
            looked_at,
            agents: in_force.agents(),
            grants: self.list_grants(who)?,
            broken: broken(&in_force.broken),
        })
    }

    /// Writes down which rule files have changed, before anything is done by
    /// them.
    pub(crate) async fn record_changes(&self) -> Result<(), Error> {
        for news in self.policy.take_news() {
            let kind = match news.broken.is_empty() {
                true => "rules.changed",
                false => "rules.broken",
            };
            let detail = json!({ "files": news.files, "broken": news.broken });
            let entry = self.core.entry(kind, "weighlock", None, detail);
            self.core.store.record(vec![entry]).await?;
        }
        Ok(())
    }

    /// Returns what people have allowed beforehand.
    pub fn list_grants(&self, who: &Principal) -> Result<Vec<GrantView>, Error> {
        who.check(Right::Look)?;
        let grants = self.policy.grants().into_iter();
        let seen = grants.filter(|grant| is_seen(grant, who));
        Ok(seen.map(grant_view).collect())
    }

    /// Refuses a grant that means nothing, or that its giver may not give:
    /// administrators for anybody and anywhere, others where they decide.
    pub(crate) fn check_grant(
        &self,
        pattern: &str,
        scope: &Scope,
        until: Option<i64>,
        by: &Principal,
    ) -> Result<Grant, Error> {
        by.check(Right::Decide)?;
        let approvals = &self.core.config.approvals;
        if approvals.four_eyes || approvals.two_for_high_risk {
            // What one allows beforehand, nobody else looks at any more.
            by.check(Right::Administer)?;
        }
        let within = scope.sandbox.as_deref();
        let within = within
            .map(|name| self.sandboxes.find(name, by))
            .transpose()?;
        let within = within.map(|info| info.sandbox_id);
        if within.is_none() && !by.is_administrator() {
            return Err(only_where_one_decides(by));
        }
        if let Some(id) = &scope.session {
            self.sessions.find(id, by)?;
        }
        let now = self.core.clock.micros();
        let id = self.core.ids.next_as("g", now);
        let grant = Grant {
            id: format!("g_{}", &id[id.len() - 6..]),
            allows: Allows::Pattern(pattern.to_owned()),
            scope: Scope {
                sandbox: within,
                ..scope.clone()
            },
            until,
            by: by.name().to_owned(),
            created: now / 1_000_000,
        };
        policy::check_grant(&grant).map_err(|errors| Error::Rules { errors })?;
        Ok(grant)
    }

    /// Allows commands of a pattern beforehand, until a time in seconds since
    /// 1970 or until it is taken back.
    pub async fn add_grant(
        &self,
        pattern: &str,
        scope: Scope,
        until: Option<i64>,
        by: &Principal,
    ) -> Result<GrantView, Error> {
        if by.is_agent() {
            return Err(self
                .core
                .refuse_agent("allow anything", Some(pattern), by)
                .await);
        }
        let grant = self.check_grant(pattern, &scope, until, by)?;
        let body = serde_json::to_string(&grant).expect("a grant is plain data");
        let entry = self
            .core
            .entry("grant.given", by.name(), None, json!({ "grant": grant }));
        self.core
            .store
            .add_grant(grant.id.clone(), body, entry)
            .await?;
        self.reload_grants()?;
        Ok(grant_view(grant))
    }

    /// Takes a grant back.
    pub async fn revoke_grant(&self, id: &str, by: &Principal) -> Result<(), Error> {
        if by.is_agent() {
            let what = "revoke grants";
            return Err(self.core.refuse_agent(what, Some(id), by).await);
        }
        by.check(Right::Decide)?;
        let mut grants = self.policy.grants().into_iter();
        let grant = grants.find(|grant| grant.id == id && is_seen(grant, by));
        let grant = grant.ok_or_else(|| Error::NoSuchGrant {
            id: crate::error::brief(id),
        })?;
        if grant.scope.sandbox.is_none() && !by.is_everywhere() {
            return Err(only_where_one_decides(by));
        }
        self.remove_grant(id, by.name()).await
    }

    async fn remove_grant(&self, id: &str, by: &str) -> Result<(), Error> {
        let entry = self
            .core
            .entry("grant.taken_back", by, None, json!({ "id": id }));
        self.core.store.remove_grant(id.to_owned(), entry).await?;
        self.reload_grants()
    }

    /// Takes back what was allowed for a session.
    pub(crate) async fn remove_grants_of(&self, session: &str, by: &str) -> Result<(), Error> {
        let grants = self.policy.grants();
        let of_session = |grant: &&Grant| grant.scope.session.as_deref() == Some(session);
        for grant in grants.iter().filter(of_session) {
            self.remove_grant(&grant.id, by).await?;
        }
        Ok(())
    }

    /// Puts the grants of the store in force.
    pub(super) fn reload_grants(&self) -> Result<(), Error> {
        self.policy.set_grants(self.read_grants()?);
        Ok(())
    }

    fn read_grants(&self) -> Result<Vec<Grant>, Error> {
        let bodies = self.core.store.grants()?;
        let grants = bodies.iter().map(|body| serde_json::from_str(body));
        Ok(grants.filter_map(Result::ok).collect())
    }
}

impl Judged {
    /// Returns why it is not `auto`, the deciding reason first.
    pub(crate) fn reasons(&self) -> Vec<ReasonView> {
        self.judgement.reasons.iter().map(reason_view).collect()
    }

    pub(crate) fn explain(&self, request: &Request, sandbox: &Sandbox) -> Explanation {
        let text = request.command.as_str();
        let judgement = &self.judgement;
        let parts = judgement.facts.parts.iter().zip(&judgement.parts);
        Explanation {
            command: text.to_owned(),
            verdict: judgement.verdict,
            agent: request.profile().map(str::to_owned),
            sandbox: sandbox.name.clone(),
            cwd: self.place.cwd.clone(),
            shell: self.shell.name().into(),
            read_only: judgement.verdict == Verdict::Auto && judgement.reads_only(),
            reasons: self.reasons(),
            parts: {
                let parts = parts.take(MAX_PARTS);
                settled(
                    text,
                    parts.map(|(part, decided)| part_view(text, part, decided)),
                )
            },
            more_parts: judgement.facts.parts.len().saturating_sub(MAX_PARTS),
            rules: judgement.tried().into_iter().map(rule_view).collect(),
            tokens: tokens(text)
                .into_iter()
                .map(|token| TokenView {
                    start: token.span.start,
                    end: token.span.end,
                    kind: token.kind,
                })
                .collect(),
            warnings: self.warnings.clone(),
            fingerprint: self.fingerprint.clone(),
        }
    }
}

/// Returns whether somebody may know of a grant: it counts where they are.
fn is_seen(grant: &Grant, who: &Principal) -> bool {
    let within = grant.scope.sandbox.as_deref();
    within.is_none_or(|sandbox| who.reaches(sandbox))
}

fn only_where_one_decides(by: &Principal) -> Error {
    Error::Forbidden {
        name: by.name().into(),
        role: by.role().word(),
        needs: "administrator, or a sandbox in which you decide",
    }
}

/// Says why files that have changed are not in force.
pub(crate) fn broken(errors: &[LoadError]) -> Vec<String> {
    errors
        .iter()
        .map(|error| format!("{error}; the rules before this change stay in force"))
        .collect()
}

pub(crate) fn reason_view(reason: &weighlock_policy::Reason) -> ReasonView {
    ReasonView {
        code: reason.code.clone(),
        text: reason.text.clone(),
        rule: reason.rule.clone(),
        layer: reason.layer.clone(),
        remedy: reason.remedy.clone(),
        span: reason.span.map(|span| (span.start, span.end)),
    }
}

fn rule_view(tried: weighlock_policy::Tried) -> RuleView {
    RuleView {
        name: tried.name,
        layer: tried.layer,
        verdict: tried.verdict,
        about: tried.about,
        matched: tried.matched,
    }
}

/// Has each part say what was decided about its text: by whatever has the same
/// one, and by the command in it that it runs.
fn settled(text: &str, parts: impl Iterator<Item = PartView>) -> Vec<PartView> {
    let mut parts: Vec<PartView> = parts.collect();
    let strictest: Vec<_> = { parts.iter().enumerate() }
        .map(|(at, part)| {
            let sure = |part: &&PartView| !part.possible;
            let same = { parts.iter().filter(sure) }
                .filter(|other| other.span == part.span && other.text == part.text);
            // In a nested text, what follows may be its neighbour's.
            let whole = text.get(part.span.0..part.span.1).map(shortened);
            let whole = whole.as_ref() == Some(&part.text);
            let inside = { parts[at + 1..].iter().filter(sure) }
                .take_while(|other| other.depth > part.depth)
                .filter(|other| other.span == part.span)
                .filter(move |other| whole || part.text.contains(&other.text));
            let decided = same.chain(inside).map(|other| (other.verdict, other.rule));
            decided.reduce(|first, next| if first.0 < next.0 { next } else { first })
        })
        .collect();
    for (part, strictest) in parts.iter_mut().zip(strictest) {
        let stricter = strictest.filter(|(verdict, _)| part.verdict < *verdict);
        if let (Some(decided), false, true) = (stricter, part.possible, part.program.is_some()) {
            (part.verdict, part.rule) = decided;
        }
    }
    parts
}

fn part_view(text: &str, part: &Part, decided: &weighlock_policy::Decided) -> PartView {
    let paths = |access: Access| {
        let found = part.paths.iter();
        let found = found.filter(|path| path.access == access && path.place != PlaceKind::Sink);
        found.map(|path| path.written.clone()).collect()
    };
    PartView {
        kind: part.kind,
        link: part.link,
        depth: part.depth,
        text: shortened(written(text, part)),
        span: (part.span.start, part.span.end),
        program: (!part.program.is_empty()).then(|| part.program.clone()),
        does: part.does.clone(),
        verdict: decided.verdict,
        rule: decided.rule,
        options: part
            .options
            .iter()
            .map(|option| OptionView {
                name: option.name.to_owned(),
                value: option.value.clone(),
                means: option.gloss.to_owned(),
            })
            .collect(),
        effects: part
            .effects
            .iter()
            .map(|effect| effect.name().to_owned())
            .collect(),
        reads: paths(Access::Read),
        writes: paths(Access::Write),
        deletes: paths(Access::Delete),
        runs: paths(Access::Run),
        hosts: part.hosts.clone(),
        unknown: part.unknown.clone(),
        possible: part.possible,
    }
}

/// Returns the text of one part of a whole.
pub(crate) fn written<'a>(text: &'a str, part: &'a Part) -> &'a str {
    let around = || text.get(part.span.start..part.span.end);
    part.text.as_deref().or_else(around).unwrap_or("")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn grant_view(grant: Grant) -> GrantView {
    GrantView {
        id: grant.id,
        pattern: match grant.allows {
            Allows::Pattern(pattern) => pattern,
            Allows::Argv(argv) => argv.join(" "),
        },
        agent: grant.scope.agent,
        sandbox: grant.scope.sandbox,
        session: grant.scope.session,
        until: grant.until,
        by: grant.by,
        created: grant.created,
    }
}
