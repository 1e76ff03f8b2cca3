//! Rule of the source policy as command-line arguments.

use chrono::NaiveDate;
use clap::Args;
use market::event::Kind;
use market::history::{PolicyRule, SourcePolicy};

/// Rule of the policy without its rank.
#[derive(Debug, Clone, Args)]
pub struct PolicyRuleArgs {
    /// Kind of rows: security, price, dividend, split, fundamentals, etf or holding
    pub kind: Kind,
    /// Source, as in ingest load --source
    pub source: String,
    /// First day; default: unlimited
    #[arg(long)]
    pub from: Option<NaiveDate>,
    /// Last day; default: unlimited
    #[arg(long)]
    pub to: Option<NaiveDate>,
}

impl PolicyRuleArgs {
    /// Policy in which this rule has the rank `rank`. If `rank` is `None`, the rule is removed. Returns `None` if the
    /// rule to remove does not exist.
    pub(super) fn change_rule(&self, policy: &SourcePolicy, rank: Option<i32>) -> Option<SourcePolicy> {
        let is_other = |rule: &&PolicyRule| {
            (rule.kind, &rule.source, rule.from, rule.to) != (self.kind, &self.source, self.from, self.to)
        };
        let mut rules: Vec<PolicyRule> = policy.rules.iter().filter(is_other).cloned().collect();
        match rank {
            Some(rank) => {
                let source = self.source.clone();
                rules.push(PolicyRule { kind: self.kind, source, from: self.from, to: self.to, rank });
            }
            None if rules.len() == policy.rules.len() => return None,
            None => {}
        }
        Some(SourcePolicy { rules })
    }
}
