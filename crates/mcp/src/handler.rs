//! The protocol, by the official SDK. Nothing outside of this file, of
//! `caller` and `seal`, and of those that open doors, knows its types.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, CompletionInfo, ConstString,
    ContentBlock, CustomRequest, CustomResult, ErrorCode, Extensions, Implementation,
    InitializeResultMethod, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
    ListResourcesResult, ListToolsRequestMethod, ListToolsResult, PaginatedRequestParams,
    PingRequestMethod, ReadResourceRequestMethod, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, ServerCapabilities,
    ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, Tool as ToolInfo, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::watch;
use weighlock_api::Me;

use crate::api::{self, Failure, brief};
use crate::call::{Again, Call};
use crate::caller::{Caller, back, instead, is_without_handshake};
use crate::desk::ClientDesk;
use crate::options::Toolset;
use crate::reply::Reply;
use crate::resources;
use crate::seal::{Bound, Seal};
use crate::tool::Tool;
use crate::{bash, execute_command, run_command, terminal, weighlock};

/// Answers clients.
#[derive(Clone)]
pub(crate) struct Handler {
    find: Find,
    seal: Seal,
}

/// What a client tells its model, whichever tools it has.
const INSTRUCTIONS: &str = "Commands run behind walls: usually no network, and only the project \
can be written. /tmp, ports and what is left running belong to one run; a terminal keeps them, and \
what it changes is seen by others when it is closed. Some commands wait for a person: nothing is \
lost then. Never repeat a command that waits or goes on: its answer has an id and says how to \
follow it. Go on with other work meanwhile.";

/// Finds a client's place, from the message that it has sent.
type Find = Arc<dyn Fn(&Extensions) -> Arc<ClientDesk> + Send + Sync>;

impl Handler {
    pub(crate) fn new(
        find: impl Fn(&Extensions) -> Arc<ClientDesk> + Send + Sync + 'static,
    ) -> Self {
        Self {
            find: Arc::new(find),
            seal: Seal::new(),
        }
    }

    async fn call(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let desk = (self.find)(&context.extensions);
        let tools = tools(&desk);
        let Some(tool) = tools.iter().find(|tool| tool.name == request.name) else {
            return Ok(result(no_such_tool(&request.name, &tools).into()).into());
        };
        let again = match is_without_handshake(&context) {
            true if is_without_state(&request) => {
                return Ok(result(failed(Some(tool.name), without_state())).into());
            }
            true => self.again(&desk, &mut request).await?,
            false => None,
        };
        let arguments = request.arguments.unwrap_or_default();
        let (cancel, cancelled) = watch::channel(false);
        let call = Call {
            desk,
            client: Box::new(Caller::new(&context)),
            again,
            question: OnceLock::new(),
            cancelled,
            began: Instant::now(),
        };
        // Whatever happens, somebody waits for an answer.
        let deed = AssertUnwindSafe((tool.deed)(&call, arguments.clone())).catch_unwind();
        let watch = async {
            context.ct.cancelled().await;
            let _ = cancel.send(true);
            std::future::pending::<()>().await;
        };
        let reply = tokio::select! {
            // Whenever it goes on, it knows whether it is cancelled.
            biased;
            () = watch => unreachable!("it waits for ever"),
            done = deed => match done {
                Ok(done) => done.unwrap_or_else(Reply::from),
                Err(_) => broken().into(),
            },
        };
        let asked = { call.question.into_inner() }.and_then(|question| {
            let bound = Bound {
                who: &question.who,
                tool: tool.name,
                arguments: &arguments,
            };
            instead(question.text, self.seal.close(&question.asked, bound))
        });
        Ok(asked.map_or_else(|| result(reply).into(), CallToolResponse::from))
    }

    /// Reads what a call goes on with that is made again. What comes back is
    /// theirs to write: nothing of it counts but what we have sealed ourselves,
    /// for them and this call.
    async fn again(
        &self,
        desk: &ClientDesk,
        request: &mut CallToolRequestParams,
    ) -> Result<Option<Again>, ErrorData> {
        let back = back(request.input_responses.take());
        let Some(sealed) = request.request_state.take() else {
            return Ok(None);
        };
        let me: Me = api::get(desk.api(), "/me".into()).await.map_err(error)?;
        let bound = Bound {
            who: &me.principal_id,
            tool: &request.name,
            arguments: &request.arguments.clone().unwrap_or_default(),
        };
        let asked = self.seal.open(&sealed, bound).ok_or_else(not_ours)?;
        Ok(Some(Again { asked, back }))
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("weighlock", env!("CARGO_PKG_VERSION"))
                    .with_title("weighlock: a shell for agents"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let desk = (self.find)(&context.extensions);
        let tools = tools(&desk).iter().map(info).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let desk = (self.find)(&context.extensions);
        let found = resources::list(&desk).await.map_err(error)?.into_iter();
        let found = found.map(|one| {
            Resource::new(one.uri, one.name)
                .with_title(one.title)
                .with_mime_type(one.mime)
        });
        Ok(ListResourcesResult::with_all_items(found.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all = resources::TEMPLATES.map(|(uri, name, title, mime)| {
            ResourceTemplate::new(uri, name)
                .with_title(title)
                .with_mime_type(mime)
        });
        Ok(ListResourceTemplatesResult::with_all_items(all.into()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let desk = (self.find)(&context.extensions);
        let read = resources::read(&desk, &request.uri).await;
        let (mime, text) = read.map_err(|failure| {
            let mut error = error(failure);
            if let Some(Value::Object(data)) = &mut error.data {
                let brief: String = request.uri.chars().take(200).collect();
                data.insert("uri".into(), brief.into());
            }
            error
        })?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type(mime);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let desk = (self.find)(&context.extensions);
        let argument = request.argument;
        let values = resources::complete(&desk, &argument.name, &argument.value).await;
        let values = CompletionInfo::with_all_values(values.map_err(error)?);
        Ok(CompleteResult::new(values.unwrap_or_default()))
    }

    /// We say little, and nothing that is worth a level.
    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match is_without_handshake(&context) {
            true => Err(ErrorData::method_not_found::<SetLevelRequestMethod>()),
            false => Ok(()),
        }
    }

    /// There are none; clients of older revisions ask all the same.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        match is_without_handshake(&context) {
            true => Err(ErrorData::method_not_found::<ListPromptsRequestMethod>()),
            false => Ok(ListPromptsResult::default()),
        }
    }

    /// Answers a call whose arguments are not an object. The SDK does not see
    /// it as a call; the client that made it gets a failed call.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if method != CallToolRequestMethod::VALUE {
            let gone = is_without_handshake(&context) && GONE.contains(&method.as_str());
            return Err(match KNOWN.contains(&method.as_str()) && !gone {
                true => ErrorData::invalid_params(format!("{method} is not understood"), None),
                false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
            });
        }
        let failure = Failure::new(
            "invalid_arguments",
            "the call is not understood; nothing was done",
            "Give `name`, and `arguments` as an object.",
        );
        let name = request.params.as_ref().map(|params| &params["name"]);
        let mut result = result(failed(name.and_then(Value::as_str), failure));
        if !is_without_handshake(&context) {
            // They do not know the word.
            result.result_type = None;
        }
        let result = serde_json::to_value(result);
        Ok(CustomResult::new(result.expect("a result is always JSON")))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }
}

/// What is answered, if it is understood.
const KNOWN: [&str; 8] = [
    CompleteRequestMethod::VALUE,
    InitializeResultMethod::VALUE,
    ListResourceTemplatesRequestMethod::VALUE,
    ListResourcesRequestMethod::VALUE,
    ListToolsRequestMethod::VALUE,
    PingRequestMethod::VALUE,
    ReadResourceRequestMethod::VALUE,
    SetLevelRequestMethod::VALUE,
];

/// Methods that older versions of the protocol had.
const GONE: [&str; 3] = [
    InitializeResultMethod::VALUE,
    PingRequestMethod::VALUE,
    SetLevelRequestMethod::VALUE,
];

fn no_such_tool(name: &str, tools: &[Tool]) -> Failure {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    Failure::new(
        "no_such_tool",
        format!("there is no tool `{}`; nothing was done", brief(name)),
        format!("There are {}.", names.join(", ")),
    )
}

/// Whether a call has answers to questions, and does not say which.
fn is_without_state(request: &CallToolRequestParams) -> bool {
    let answers = { request.input_responses.as_ref() }.is_some_and(|all| !all.is_empty());
    answers && request.request_state.is_none()
}

/// For such a call: as a first one it would be run once more.
fn without_state() -> Failure {
    Failure::new(
        "request_state_missing",
        "`inputResponses` came without the `requestState` of its question; nothing was done",
        "Make the call again with both. What was asked about still waits: see what there is.",
    )
}

/// What went wrong, as the clients of a tool expect it.
fn failed(tool: Option<&str>, failure: Failure) -> Reply {
    match tool {
        Some(execute_command::NAME) => execute_command::failed(&failure),
        Some(terminal::NAME) => terminal::failed(&failure),
        _ => failure.into(),
    }
}

/// For a call that is made again with what we have not given it.
fn not_ours() -> ErrorData {
    let why = "`requestState` is not of this call; nothing was done";
    let hint = "What was asked about may still wait: see what there is before the call is made \
                anew, which runs it once more.";
    let data = json!({ "code": "request_state_refused", "hint": hint });
    ErrorData::invalid_params(why, Some(data))
}

/// Something that should not be.
fn broken() -> Failure {
    Failure::new(
        "internal",
        "the call broke off; what it has begun goes on",
        "See what there is, before it is made again.",
    )
}

/// For what is no tool.
fn error(failure: Failure) -> ErrorData {
    let code = match failure.code.starts_with("no_such") || failure.code == "not_found" {
        true => ErrorCode::RESOURCE_NOT_FOUND,
        false => ErrorCode::INTERNAL_ERROR,
    };
    let data = json!({ "code": failure.code, "hint": failure.hint });
    ErrorData::new(code, failure.what, Some(data))
}

/// The tools that a client has chosen.
fn tools(desk: &ClientDesk) -> Vec<Tool> {
    let chosen = match desk.options.toolsets.as_slice() {
        [] => &[Toolset::Weighlock],
        chosen => chosen,
    };
    let mut tools: Vec<Tool> = vec![];
    for toolset in chosen {
        let offered = match toolset {
            Toolset::Weighlock => weighlock::tools(),
            Toolset::ExecuteCommand => execute_command::tools(),
            Toolset::Terminal => terminal::tools(),
            Toolset::Shell => run_command::tools(),
            Toolset::Bash => bash::tools(),
        };
        // What two of them have in common is there once.
        let has = |name| tools.iter().any(|tool| tool.name == name);
        let new: Vec<Tool> = { offered.into_iter() }
            .filter(|tool| !has(tool.name))
            .collect();
        tools.extend(new);
    }
    tools
}

fn info(tool: &Tool) -> ToolInfo {
    let object = |schema: Value| match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    };
    let hints = ToolAnnotations::new()
        .read_only(tool.hints.reads)
        .destructive(tool.hints.destroys)
        .idempotent(tool.hints.idempotent)
        .open_world(tool.hints.open_world);
    let info = ToolInfo::new(tool.name, tool.description, object((tool.input)()))
        .with_title(tool.title)
        .with_annotations(hints);
    match tool.output {
        Some(output) => info.with_raw_output_schema(object(output())),
        None => info,
    }
}

fn result(reply: Reply) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(reply.text)]);
    result.structured_content = reply.data;
    result.is_error = Some(reply.failed);
    result
}
