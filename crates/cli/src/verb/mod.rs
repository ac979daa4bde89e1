//! One file per verb.

pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod blacklist;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod inbox;
pub(crate) mod openapi;
pub(crate) mod output;
pub(crate) mod pause;
pub(crate) mod people;
pub(crate) mod policy;
pub(crate) mod reject;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod signin;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod watch;
