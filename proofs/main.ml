(* Reads a certificate of format 3 for errors, without constraints, from the standard input, and checks it by the verified
   functions. What is trusted is this reading of the table and the numbers of the first lines: what is claimed below them
   may be anything. *)

module V = Verified

exception Refused of string

let refuse format = Printf.ksprintf (fun text -> raise (Refused text)) format

(* A double as a whole number of 2^-1074. *)
let whole word =
  match float_of_string_opt word with
  | None -> refuse "%S is no number" word
  | Some x when not (Float.is_finite x) -> refuse "%S is no finite number" word
  | Some x ->
      let mantissa, exponent = Float.frexp x in
      let digits = Z.of_float (Float.ldexp mantissa 53) and by = exponent - 53 + 1074 in
      if by >= 0 then Z.shift_left digits by else Z.shift_right digits (-by)

let integer word = match int_of_string_opt word with Some n -> n | None -> refuse "%S is no whole number" word
let rec natural n : V.nat = if n <= 0 then V.O else V.S (natural (n - 1))
let words line = List.filter (fun word -> word <> "") (String.split_on_char ' ' line)

let next_line () = try words (input_line stdin) with End_of_file -> refuse "the file ends too early"

let next key =
  match next_line () with
  | first :: rest when first = key -> rest
  | first :: _ -> refuse "a line begins with %S, and not with %S" first key
  | [] -> refuse "an empty line"

(* The rank of each sample among the values of a feature, and the greatest: whatever this does, the ranks are checked. *)
let ranks_of column =
  let values = Array.of_list (List.sort_uniq Z.compare column) in
  let rank x =
    let rec among low high =
      if low >= high then low
      else
        let middle = (low + high) / 2 in
        if Z.compare values.(middle) x < 0 then among (middle + 1) high else among low middle
    in
    Z.of_int (among 0 (Array.length values))
  in
  (List.map rank column, Z.of_int (Array.length values - 1))

let rec transposed = function
  | [] | [] :: _ -> []
  | columns -> List.map List.hd columns :: transposed (List.map List.tl columns)

(* The tree from its nodes in heap order. *)
let rec tree_at nodes t : V.tree =
  match if t < Array.length nodes then nodes.(t) else (-1, Z.zero) with
  | f, threshold when f >= 0 ->
      V.Split (natural f, threshold, tree_at nodes ((2 * t) + 1), tree_at nodes ((2 * t) + 2))
  | _ -> V.Leaf V.O

let rec nodes_of = function
  | f :: threshold :: rest -> (integer f, whole threshold) :: nodes_of rest
  | [] -> []
  | _ -> refuse "the tree has half a node"

let claims () =
  let rec read lines =
    match input_line stdin with
    | line -> read (List.map (fun word -> Z.of_int (integer word)) (words line) :: lines)
    | exception End_of_file -> List.rev lines
  in
  read []

let run () =
  ignore (next_line ());
  let depth, n, least, split_cost, unit, p, classes =
    match next "problem" with
    | [ "errors"; depth; n; p; "1"; classes; least; split_cost; unit; _ ] ->
        (integer depth, integer n, integer least, split_cost, unit, integer p, integer classes)
    | "errors" :: _ -> refuse "it has several targets; this checker takes one"
    | loss :: _ -> refuse "its loss is %S; this checker takes errors" loss
    | [] -> refuse "the problem is empty"
  in
  if depth < 1 || depth > 20 || n < 1 || p < 1 || classes < 1 || least < 1 then
    refuse "depth %d, %d samples, %d features, %d classes, leaves of %d" depth n p classes least;
  let costs = List.init classes (fun _ -> List.map whole (next "cost")) in
  let sample () =
    match next "sample" with
    | class_ :: weight :: features ->
        let k = match float_of_string_opt class_ with Some k -> k | None -> refuse "%S is no class" class_ in
        if not (Float.is_integer k && k >= 0. && k < float_of_int classes) then refuse "class %s of %d" class_ classes;
        { V.class0 = natural (int_of_float k); weight = whole weight; features = List.map whole features }
    | _ -> refuse "a sample has no class and weight"
  in
  let samples = List.init n (fun _ -> sample ()) in
  List.iter (fun s -> if List.length s.V.features <> p then refuse "a sample has not %d features" p) samples;
  let grid =
    match next_line () with
    | "grid" :: exponent :: _ -> integer exponent
    | key :: _ -> refuse "it states constraints (%S); this checker takes none" key
    | [] -> refuse "an empty line"
  in
  if grid > 2148 then refuse "the grid 2^-%d is finer than products of doubles" grid;
  let objective, nodes =
    match next "tree" with
    | objective :: nodes -> (whole objective, Array.of_list (nodes_of nodes))
    | [] -> refuse "the tree is empty"
  in
  let b, bound =
    match next "bound" with [ b; bound ] -> (Z.of_int (integer b), bound) | _ -> refuse "no bound in its line"
  in
  let problem =
    { V.samples; costs; split_cost = whole split_cost; depth = natural depth; least_size = Z.of_int least;
      unit0 = whole unit; bound = whole bound }
  in
  let own = whole unit in
  if Z.sign own <= 0 then refuse "the unit is not above 0";
  let loss =
    match V.value problem (tree_at nodes 0) with
    | Some loss -> loss
    | None -> refuse "the tree of the file is too deep, or has a leaf that is too small"
  in
  (* The objective is a quotient: a billionth of it is left to rounding. *)
  let missed = Z.abs (Z.sub (Z.mul objective own) loss) in
  if Z.gt (Z.mul missed (Z.of_int 1_000_000_000)) loss then refuse "the tree of the file has another value";
  let ranks, last = List.split (List.map ranks_of (transposed (List.map (fun s -> s.V.features) samples))) in
  if not (V.check problem (transposed ranks) last (Z.of_int (2148 - grid)) b (claims ())) then
    refuse "what it claims does not follow";
  Printf.printf "verified bound %.17g objective %.17g: no tree of at most %d levels%s has an objective below the bound\n"
    (float_of_string bound)
    (Q.to_float (Q.make loss (Z.mul own (Z.shift_left Z.one 1074))))
    depth
    (if least > 1 then Printf.sprintf ", with leaves of at least %d samples," least else "")

let () =
  try run () with
  | Refused reason -> Printf.printf "refused: %s\n" reason; exit 3
  | Stack_overflow -> print_endline "refused: the table is too long for the stack; raise it with ulimit -s"; exit 3
