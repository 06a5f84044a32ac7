(** If the checker accepts, no admitted tree has an objective below the bound. *)

From Coq Require Import ZArith List Bool Lia Permutation Sorted Mergesort Orders.
From Mipforest Require Import checker.
Import ListNotations.
Open Scope Z_scope.

(** * Lists *)

Lemma filter_filter {A} (p q : A -> bool) l : filter p (filter q l) = filter q (filter p l).
Proof.
  induction l as [|a l IH]; simpl; auto.
  destruct (p a) eqn:Hp, (q a) eqn:Hq; simpl; rewrite ?Hp, ?Hq, ?IH; auto.
Qed.

Lemma filter_incl {A} (p q : A -> bool) l :
  (forall a, p a = true -> q a = true) -> filter p (filter q l) = filter p l.
Proof.
  intros H. induction l as [|a l IH]; simpl; auto.
  destruct (q a) eqn:Hq; simpl; rewrite IH; auto.
  destruct (p a) eqn:Hp; auto. rewrite (H a Hp) in Hq. discriminate.
Qed.

Lemma size_nonneg {A} (l : list A) : 0 <= size l.
Proof. unfold size. lia. Qed.

Lemma size_cons {A} (a : A) l : size (a :: l) = 1 + size l.
Proof. unfold size. simpl length. lia. Qed.

Lemma size_filter {A} (p : A -> bool) l : size l = size (filter p l) + size (filter (fun a => negb (p a)) l).
Proof.
  induction l as [|a l IH]; auto. simpl filter. rewrite size_cons.
  destruct (p a); cbn [negb]; rewrite size_cons; lia.
Qed.

Lemma size_filter_le {A} (p q : A -> bool) l :
  (forall a, p a = true -> q a = true) -> size (filter p l) <= size (filter q l).
Proof.
  intros H. induction l as [|a l IH]; simpl; try lia.
  destruct (p a) eqn:Hp.
  - rewrite (H a Hp), !size_cons. lia.
  - destruct (q a); rewrite ?size_cons; lia.
Qed.

Lemma perm_filter {A} (p : A -> bool) l l' : Permutation l l' -> Permutation (filter p l) (filter p l').
Proof.
  induction 1; simpl; auto.
  - destruct (p x); auto.
  - destruct (p x), (p y); auto using perm_swap.
  - eauto using Permutation_trans.
Qed.

Lemma size_perm {A} (l l' : list A) : Permutation l l' -> size l = size l'.
Proof. intros H. unfold size. rewrite (Permutation_length H). auto. Qed.

Lemma sum_app l l' : sum (l ++ l') = sum l + sum l'.
Proof. unfold sum. induction l; simpl; lia. Qed.

Lemma sum_perm l l' : Permutation l l' -> sum l = sum l'.
Proof. unfold sum. induction 1; simpl; lia. Qed.

Lemma filter_map {A B} (f : A -> B) (p : B -> bool) l : filter p (map f l) = map f (filter (fun a => p (f a)) l).
Proof. induction l as [|a l IH]; simpl; auto. destruct (p (f a)); simpl; rewrite IH; auto. Qed.

Lemma filter_ext_in' {A} (p q : A -> bool) l : (forall a, In a l -> p a = q a) -> filter p l = filter q l.
Proof.
  induction l as [|a l IH]; simpl; auto. intros H.
  rewrite (H a) by auto. destruct (q a); rewrite IH; auto.
Qed.

Lemma filter_all {A} (p : A -> bool) l : (forall a, In a l -> p a = true) -> filter p l = l.
Proof. induction l as [|a l IH]; simpl; auto. intros H. rewrite (H a), IH; auto. Qed.

Lemma filter_none {A} (p : A -> bool) l : (forall a, In a l -> p a = false) -> filter p l = [].
Proof. induction l as [|a l IH]; simpl; auto. intros H. rewrite (H a), IH; auto. Qed.

Lemma nth_map_in {A B} (h : A -> B) l g da db : (g < length l)%nat -> nth g (map h l) db = h (nth g l da).
Proof. revert g. induction l; destruct g; simpl; intros; auto; try lia. apply IHl. lia. Qed.

Lemma count_size {A} (l : list A) : count l = size l.
Proof.
  assert (H : forall n, fold_left (fun n _ => n + 1) l n = n + size l).
  { induction l as [|a l IH]; simpl; intros n; [unfold size; simpl; lia|]. rewrite IH, size_cons. lia. }
  unfold count. rewrite H. lia.
Qed.

(** * Vectors *)

Section Rows.
Variables (K p : nat) (last : list Z).
Hypothesis has_features : (0 < p)%nat.
Hypothesis last_length : length last = p.

Definition wide (x : list Z) : Prop := length x = K.

Lemma vadd_length a b : length a = length b -> length (vadd a b) = length a.
Proof. revert b. induction a; destruct b; simpl; auto; intros; f_equal; auto. Qed.

Lemma vsub_length a b : length a = length b -> length (vsub a b) = length a.
Proof. revert b. induction a; destruct b; simpl; auto; intros; f_equal; auto. Qed.

Lemma nth_vadd a b k : length a = length b -> nth k (vadd a b) 0 = nth k a 0 + nth k b 0.
Proof. revert b k. induction a; destruct b, k; simpl; intros; auto; try discriminate; try lia. Qed.

Lemma nth_vsub a b k : length a = length b -> nth k (vsub a b) 0 = nth k a 0 - nth k b 0.
Proof. revert b k. induction a; destruct b, k; simpl; intros; auto; try discriminate; try lia. Qed.

Lemma nth_zeros k : nth k (zeros K) 0 = 0.
Proof. unfold zeros. revert k. induction K; destruct k; simpl; auto. Qed.

Lemma zeros_wide : wide (zeros K).
Proof. apply repeat_length. Qed.

Lemma fold_vadd_wide l : forall a, wide a -> Forall wide l -> wide (fold_left vadd l a).
Proof.
  induction l as [|x l IH]; simpl; auto. intros a Ha Hl. inversion Hl; subst.
  apply IH; auto. unfold wide in *. rewrite vadd_length; congruence.
Qed.

Lemma nth_fold_vadd k l : forall a, wide a -> Forall wide l ->
  nth k (fold_left vadd l a) 0 = nth k a 0 + sum (map (fun x => nth k x 0) l).
Proof.
  induction l as [|x l IH]; simpl; intros a Ha Hl; [unfold sum; simpl; lia|].
  inversion Hl; subst. unfold wide in *. rewrite IH; auto.
  - rewrite nth_vadd by congruence. unfold sum. simpl. lia.
  - unfold wide. rewrite vadd_length; congruence.
Qed.

Lemma vsum_wide l : Forall wide l -> wide (vsum K l).
Proof. intros. apply fold_vadd_wide; auto using zeros_wide. Qed.

Lemma nth_vsum k l : Forall wide l -> nth k (vsum K l) 0 = sum (map (fun x => nth k x 0) l).
Proof. intros. unfold vsum. rewrite nth_fold_vadd; auto using zeros_wide. rewrite nth_zeros. lia. Qed.

Lemma fold_min_le l : forall x, fold_left Z.min l x <= x.
Proof. induction l as [|y l IH]; simpl; intros; try lia. specialize (IH (Z.min x y)). lia. Qed.

Lemma fold_min_nth l : forall x k, (k < length l)%nat -> fold_left Z.min l x <= nth k l 0.
Proof.
  induction l as [|y l IH]; simpl; intros x k H; try lia. destruct k.
  - pose proof (fold_min_le l (Z.min x y)). lia.
  - apply IH. lia.
Qed.

Lemma leaf_nth v k : (k < length v)%nat -> leaf v <= nth k v 0.
Proof.
  destruct v as [|x v]; simpl; intros H; try lia. destruct k.
  - apply fold_min_le.
  - apply fold_min_nth. lia.
Qed.

(** * Trees on rows *)

Variable cost : Z.
Hypothesis cost_nonneg : 0 <= cost.

Definition left_of (f : nat) (t : Z) (r : row) : bool := rank f r <? t.
Definition right_of (f : nat) (t : Z) (r : row) : bool := negb (left_of f t r).

Fixpoint rloss (T : tree) (R : list row) : Z :=
  match T with
  | Leaf k => sum (map (fun r => nth k (lost r) 0) R)
  | Split f t l r => cost + rloss l (filter (left_of f t) R) + rloss r (filter (right_of f t) R)
  end.

Fixpoint rhold (m : Z) (T : tree) (R : list row) : Prop :=
  match T with
  | Leaf _ => m <= size R
  | Split f t l r => rhold m l (filter (left_of f t) R) /\ rhold m r (filter (right_of f t) R)
  end.

Definition sound_row (r : row) : Prop :=
  wide (lost r) /\ length (at_ r) = p /\ Forall (fun x => 0 <= x) (lost r)
  /\ forall f, (f < p)%nat -> 0 <= rank f r <= nth f last 0.

Lemma forall_filter {A} (Q : A -> Prop) (q : A -> bool) l : Forall Q l -> Forall Q (filter q l).
Proof. rewrite !Forall_forall. intros H a Ha. apply filter_In in Ha. apply H; tauto. Qed.

Lemma forall_perm {A} (Q : A -> Prop) l l' : Permutation l l' -> Forall Q l -> Forall Q l'.
Proof. rewrite !Forall_forall. intros HP H a Ha. apply H. exact (Permutation_in a (Permutation_sym HP) Ha). Qed.

Lemma sound_nth r k : sound_row r -> 0 <= nth k (lost r) 0.
Proof.
  intros (_ & _ & H & _). destruct (nth_in_or_default k (lost r) 0) as [Hin | ->]; try lia.
  rewrite Forall_forall in H. auto.
Qed.

Lemma rloss_nonneg T : forall R, Forall sound_row R -> 0 <= rloss T R.
Proof.
  induction T as [k|f t l IHl r IHr]; simpl; intros R HR.
  - induction HR as [|a R Ha HR IH]; unfold sum in *; simpl; try lia. pose proof (sound_nth a k Ha). lia.
  - pose proof (IHl _ (forall_filter _ (left_of f t) _ HR)).
    pose proof (IHr _ (forall_filter _ (right_of f t) _ HR)). lia.
Qed.

Lemma rloss_perm T : forall R R', Permutation R R' -> rloss T R = rloss T R'.
Proof.
  induction T as [k|f t l IHl r IHr]; simpl; intros R R' HP.
  - apply sum_perm, Permutation_map, HP.
  - rewrite (IHl _ _ (perm_filter (left_of f t) _ _ HP)), (IHr _ _ (perm_filter (right_of f t) _ _ HP)). auto.
Qed.

Lemma rhold_perm m T : forall R R', Permutation R R' -> rhold m T R -> rhold m T R'.
Proof.
  induction T as [k|f t l IHl r IHr]; simpl; intros R R' HP.
  - rewrite (size_perm _ _ HP). auto.
  - intros [Hl Hr]. split; [eapply IHl | eapply IHr]; eauto using perm_filter.
Qed.

(** Fewer rows never lose more. *)
Lemma rloss_filter T q : forall R, Forall sound_row R -> rloss T (filter q R) <= rloss T R.
Proof.
  induction T as [k|f t l IHl r IHr]; simpl; intros R HR.
  - induction HR as [|a R Ha HR IH]; simpl; [lia|]. pose proof (sound_nth a k Ha).
    destruct (q a); unfold sum in *; simpl; lia.
  - rewrite (filter_filter (left_of f t)), (filter_filter (right_of f t)).
    pose proof (IHl _ (forall_filter _ (left_of f t) _ HR)).
    pose proof (IHr _ (forall_filter _ (right_of f t) _ HR)). lia.
Qed.

Lemma rhold_less m m' T : m' <= m -> forall R, rhold m T R -> rhold m' T R.
Proof. intros H. induction T; simpl; intros R; [lia|]. intros [Hl Hr]; split; auto. Qed.

Lemma rhold_zero T : forall R, rhold 0 T R.
Proof. induction T; simpl; intros; auto using size_nonneg. Qed.

Lemma rhold_size m T : forall R, rhold m T R -> m <= size R.
Proof.
  induction T as [k|f t l IHl r IHr]; simpl; intros R; auto. intros [Hl _]. apply IHl in Hl.
  rewrite (size_filter (left_of f t) R). pose proof (size_nonneg (filter (fun a => negb (left_of f t a)) R)). lia.
Qed.

(** A leaf keeps all but the rows that are left out. *)
Lemma rhold_filter T q : forall m R, rhold m T R -> rhold (m - size (filter (fun a => negb (q a)) R)) T (filter q R).
Proof.
  induction T as [k|f t l IHl r IHr]; simpl; intros m R.
  - rewrite (size_filter q R). lia.
  - intros [Hl Hr]. rewrite (filter_filter (left_of f t)), (filter_filter (right_of f t)).
    split; [apply IHl in Hl; eapply rhold_less; [|exact Hl] | apply IHr in Hr; eapply rhold_less; [|exact Hr]];
      rewrite filter_filter;
      match goal with |- _ <= _ - size (filter ?g ?l) =>
        pose proof (size_filter g l); pose proof (size_nonneg (filter (fun a => negb (g a)) l)) end; lia.
Qed.

(** * What is claimed *)

Definition bounded (d : nat) (m b : Z) (R : list row) : Prop :=
  forall T, (levels T <= d)%nat -> labels_below K T -> rhold m T R -> b <= rloss T R.

Lemma bounded_perm d m b R R' : Permutation R R' -> bounded d m b R -> bounded d m b R'.
Proof.
  intros HP H T HT HK Hm. rewrite <- (rloss_perm T _ _ HP). apply H; auto.
  eapply rhold_perm; [apply Permutation_sym; exact HP|auto].
Qed.

Lemma leaf_le_sum R k : Forall sound_row R -> (k < K)%nat ->
  leaf (vsum K (map lost R)) <= sum (map (fun r => nth k (lost r) 0) R).
Proof.
  intros HR Hk.
  assert (Hw : Forall wide (map lost R)).
  { rewrite Forall_map. eapply Forall_impl; [|exact HR]. intros r (Hr & _). exact Hr. }
  pose proof (vsum_wide _ Hw) as Hv. unfold wide in Hv.
  etransitivity; [apply (leaf_nth _ k); rewrite Hv; auto|]. rewrite nth_vsum, map_map by auto. lia.
Qed.


Lemma none_left f t R : filter (left_of f t) R = [] -> filter (right_of f t) R = R.
Proof.
  intros H. apply filter_all. intros a Ha. unfold right_of.
  destruct (left_of f t a) eqn:E; auto. exfalso.
  assert (In a (filter (left_of f t) R)) by (apply filter_In; auto). rewrite H in *. contradiction.
Qed.

Lemma none_right f t R : filter (right_of f t) R = [] -> filter (left_of f t) R = R.
Proof.
  intros H. apply filter_all. intros a Ha.
  destruct (left_of f t a) eqn:E; auto. exfalso.
  assert (In a (filter (right_of f t) R)) by (apply filter_In; unfold right_of; rewrite E; auto).
  rewrite H in *. contradiction.
Qed.

(** A bound of one leaf, and of all splits that part the rows, is a bound: what is below another split moves up. *)
Lemma bounded_by_splits d m b R : Forall sound_row R -> b <= leaf (vsum K (map lost R)) ->
  (forall f t l r, (levels l <= d)%nat -> (levels r <= d)%nat -> labels_below K l -> labels_below K r ->
     rhold m (Split f t l r) R -> filter (left_of f t) R <> [] -> filter (right_of f t) R <> [] ->
     b <= rloss (Split f t l r) R) ->
  bounded (S d) m b R.
Proof.
  intros HR Hleaf Hsplit T. induction T as [k|f t l IHl r IHr]; intros HT HK Hm.
  - simpl in *. etransitivity; [exact Hleaf|]. apply leaf_le_sum; auto.
  - simpl in HT, HK. destruct HK as [HKl HKr].
    destruct (filter (left_of f t) R) eqn:EL; [|destruct (filter (right_of f t) R) eqn:ER].
    + pose proof (none_left f t R EL) as ER. destruct Hm as [_ Hm]. rewrite ER in Hm.
      simpl. rewrite ER, EL. pose proof (rloss_nonneg l [] (Forall_nil _)).
      assert (b <= rloss r R) by (apply IHr; auto; lia). lia.
    + pose proof (none_right f t R ER) as EL'. destruct Hm as [Hm _]. rewrite EL' in Hm.
      simpl. rewrite ER, EL'. pose proof (rloss_nonneg r [] (Forall_nil _)).
      assert (b <= rloss l R) by (apply IHl; auto; lia). lia.
    + apply Hsplit; auto; try lia; rewrite ?EL, ?ER; discriminate.
Qed.

(** An interval of thresholds of a feature: trees with the root's threshold there lose what both sides lose. *)
Lemma bounded_in_interval d f low high m few b x y R : Forall sound_row R ->
  few = fewer f low high m R ->
  bounded d few x (filter (fun r => rank f r <? low) R) ->
  bounded d few y (filter (fun r => high <=? rank f r) R) ->
  b <= cost + x + y ->
  forall t l r, low <= t <= high -> (levels l <= d)%nat -> (levels r <= d)%nat -> labels_below K l -> labels_below K r ->
    rhold m (Split f t l r) R -> b <= rloss (Split f t l r) R.
Proof.
  intros HR Hfew Hx Hy Hb t l r Ht Hl Hr HKl HKr [Hml Hmr]. simpl.
  assert (El : filter (fun r => rank f r <? low) (filter (left_of f t) R) = filter (fun r => rank f r <? low) R).
  { apply filter_incl. intros a. unfold left_of. rewrite !Z.ltb_lt. lia. }
  assert (Er : filter (fun r => high <=? rank f r) (filter (right_of f t) R) = filter (fun r => high <=? rank f r) R).
  { apply filter_incl. intros a. unfold right_of, left_of. rewrite negb_true_iff, Z.ltb_ge, Z.leb_le. lia. }
  set (out := size (filter (fun r => (low <=? rank f r) && (rank f r <? high)) R)).
  assert (Hsize : few <= m - out \/ few = 0).
  { subst few. unfold fewer. rewrite count_size. fold out. destruct (1 <? m - out); lia. }
  assert (Hsides : forall T q side, rhold m T (filter side R) ->
            (forall a, side a && negb (q a) = true -> (low <=? rank f a) && (rank f a <? high) = true) ->
            rhold few T (filter q (filter side R))).
  { intros T q side HT Hq. destruct Hsize as [Hs | ->]; [|apply rhold_zero].
    eapply rhold_less; [|apply rhold_filter; exact HT].
    assert (size (filter (fun a => negb (q a)) (filter side R)) <= out); [|lia].
    unfold out. transitivity (size (filter (fun a => side a && negb (q a)) R)).
    - clear. induction R as [|a R IH]; simpl; [lia|].
      destruct (side a); simpl; [destruct (q a); simpl; rewrite ?size_cons; lia|lia].
    - apply size_filter_le. exact Hq. }
  assert (Hxl : x <= rloss l (filter (left_of f t) R)).
  { etransitivity; [|apply (rloss_filter l (fun r => rank f r <? low)); apply forall_filter; auto].
    rewrite El. apply Hx; auto. rewrite <- El. apply Hsides; auto.
    intros a. unfold left_of. rewrite !andb_true_iff, negb_true_iff, Z.ltb_ge, !Z.ltb_lt, Z.leb_le. lia. }
  assert (Hyr : y <= rloss r (filter (right_of f t) R)).
  { etransitivity; [|apply (rloss_filter r (fun r => high <=? rank f r)); apply forall_filter; auto].
    rewrite Er. apply Hy; auto. rewrite <- Er. apply Hsides; auto.
    intros a. unfold right_of, left_of.
    rewrite !andb_true_iff, !negb_true_iff, Z.ltb_ge, Z.ltb_lt, Z.leb_gt, Z.leb_le. lia. }
  lia.
Qed.

(** * Columns: the rows in the order of each feature *)

Definition by_rank (g : nat) (a b : row) : Prop := rank g a <= rank g b.

Definition ordered (columns : list (list row)) : Prop :=
  length columns = p /\ Forall sound_row (hd [] columns)
  /\ forall g, (g < p)%nat ->
       Permutation (nth g columns []) (hd [] columns) /\ StronglySorted (by_rank g) (nth g columns []).

Lemma sorted_filter {A} (R : A -> A -> Prop) q l : StronglySorted R l -> StronglySorted R (filter q l).
Proof.
  induction 1 as [|a l Hl IH Ha]; simpl; [constructor|].
  destruct (q a); auto. constructor; auto using forall_filter.
Qed.

Lemma nth_cut f keep columns g :
  nth g (cut f keep columns) [] = filter (fun r => keep (rank f r)) (nth g columns []).
Proof. unfold cut. revert g. induction columns; destruct g; simpl; auto. Qed.

Lemma hd_nth {A} (l : list A) d : hd d l = nth 0 l d.
Proof. destruct l; auto. Qed.

Lemma hd_cut f keep columns : hd [] (cut f keep columns) = filter (fun r => keep (rank f r)) (hd [] columns).
Proof. rewrite !hd_nth. apply nth_cut. Qed.

Lemma ordered_cut f keep columns : ordered columns -> ordered (cut f keep columns).
Proof.
  intros (Hp & HR & H). unfold ordered. rewrite hd_cut. repeat split.
  - unfold cut. rewrite map_length. exact Hp.
  - apply forall_filter, HR.
  - rewrite nth_cut. apply perm_filter, H; auto.
  - rewrite nth_cut. apply sorted_filter, H; auto.
Qed.

Lemma nth_numbered {A B} (F : nat -> A -> B) (da : A) (db : B) l : forall s g, (g < length l)%nat ->
  nth g (map (fun ga => F (fst ga) (snd ga)) (combine (seq s (length l)) l)) db = F (s + g)%nat (nth g l da).
Proof.
  induction l as [|a l IH]; simpl; intros s g Hg; [lia|]. destruct g.
  - rewrite Nat.add_0_r. auto.
  - rewrite IH by lia. f_equal. lia.
Qed.

Lemma numbered_length {A B} (F : nat * A -> B) l s : length (map F (combine (seq s (length l)) l)) = length l.
Proof. rewrite map_length, combine_length, seq_length. lia. Qed.

(** * The least loss of one split *)

Definition final (d : Z) (l : list entry) : Z := fold_left (fun _ e => fst e) l d.

Lemma final_below t l : forall d, l <> [] -> (forall e, In e l -> fst e < t) -> final d l < t.
Proof.
  induction l as [|e l IH]; intros d Hl H; [congruence|]. unfold final in *. simpl.
  destruct l as [|e' l]; [simpl; apply H; simpl; auto|].
  apply IH; [discriminate|]. intros a Ha. apply H. simpl in *. tauto.
Qed.

Lemma lesser_le best v w : (best = Some w -> exists v', lesser best v = Some v' /\ v' <= w).
Proof. intros ->. simpl. eexists; split; eauto. lia. Qed.

Lemma lesser_new best v : exists v', lesser best v = Some v' /\ v' <= v.
Proof. destruct best; simpl; eexists; split; eauto; lia. Qed.

Lemma scan_known m n total l : forall seen before br best w, best = Some w ->
  exists v, scan cost m n total l seen before br best = Some v /\ v <= w.
Proof.
  induction l as [|[r x] l IH]; simpl; intros seen before br best w Hb; [exists w; split; auto; lia|].
  destruct ((br <? r) && (m <=? seen) && (m <=? n - seen)).
  - destruct (lesser_le best (cost + leaf before + leaf (vsub total before)) w Hb) as (w' & Hw & Hle).
    destruct (IH (seen + 1) (vadd before x) r _ w' Hw) as (v & Hv & Hv'). exists v. split; auto. lia.
  - apply IH; auto.
Qed.

Lemma scan_split m n total P : forall e S seen before br best,
  final br P < fst e -> m <= seen + size P -> m <= n - (seen + size P) ->
  let sums := fold_left vadd (map snd P) before in
  exists v, scan cost m n total (P ++ e :: S) seen before br best = Some v
            /\ v <= cost + leaf sums + leaf (vsub total sums).
Proof.
  induction P as [|[r0 x0] P IH]; intros [r x] S seen before br best Hfinal Hm Hn.
  - simpl in *. unfold size in Hm, Hn. simpl in Hm, Hn.
    replace ((br <? r) && (m <=? seen) && (m <=? n - seen)) with true.
    + destruct (lesser_new best (cost + leaf before + leaf (vsub total before))) as (w & Hw & Hle).
      destruct (scan_known m n total S (seen + 1) (vadd before x) r _ w Hw) as (v & Hv & Hv').
      exists v. split; auto. lia.
    + symmetry. rewrite !andb_true_iff, Z.ltb_lt, !Z.leb_le. unfold final in Hfinal. simpl in Hfinal. lia.
  - rewrite size_cons in Hm, Hn. simpl. apply IH; auto; lia.
Qed.

Lemma fold_scan_known m n total columns : forall best w, best = Some w ->
  exists v, fold_left (fun best column => scan cost m n total column 0 (zeros K) (-1) best) columns best = Some v
            /\ v <= w.
Proof.
  induction columns as [|c columns IH]; simpl; intros best w Hb; [exists w; split; auto; lia|].
  destruct (scan_known m n total c 0 (zeros K) (-1) best w Hb) as (w' & Hw & Hle).
  destruct (IH _ _ Hw) as (v & Hv & Hv'). exists v. split; auto. lia.
Qed.

Lemma fold_scan_in m n total columns c w : In c columns ->
  (forall best, exists v, scan cost m n total c 0 (zeros K) (-1) best = Some v /\ v <= w) ->
  forall best, exists v,
    fold_left (fun best column => scan cost m n total column 0 (zeros K) (-1) best) columns best = Some v /\ v <= w.
Proof.
  intros Hin Hc. induction columns as [|c' columns IH]; simpl in *; [contradiction|]. intros best.
  destruct Hin as [-> | Hin]; [|apply IH; auto].
  destruct (Hc best) as (w' & Hw & Hle).
  destruct (fold_scan_known m n total columns _ _ Hw) as (v & Hv & Hv'). exists v. split; auto. lia.
Qed.

Lemma sorted_parts g t R : StronglySorted (by_rank g) R -> R = filter (left_of g t) R ++ filter (right_of g t) R.
Proof.
  induction 1 as [|a R HR IH Ha]; simpl; auto. unfold right_of at 1.
  destruct (left_of g t a) eqn:E; simpl.
  - f_equal. exact IH.
  - rewrite (filter_none (left_of g t) R), (filter_all (right_of g t) R); auto;
      rewrite Forall_forall in Ha; intros b Hb; specialize (Ha b Hb);
      unfold right_of, left_of, by_rank in *; rewrite ?negb_true_iff, Z.ltb_ge in *; lia.
Qed.

(** A split that parts rows is on a feature, at a threshold up to the greatest rank. *)
Lemma parts_rows f t R : Forall sound_row R -> filter (left_of f t) R <> [] -> filter (right_of f t) R <> [] ->
  (f < p)%nat /\ 1 <= t <= nth f last 0.
Proof.
  intros HR HL Hr.
  destruct (filter (left_of f t) R) as [|a la] eqn:EL; [congruence|].
  destruct (filter (right_of f t) R) as [|b lb] eqn:ER; [congruence|].
  assert (Ha : In a (filter (left_of f t) R)) by (rewrite EL; simpl; auto).
  assert (Hb : In b (filter (right_of f t) R)) by (rewrite ER; simpl; auto).
  apply filter_In in Ha. apply filter_In in Hb. destruct Ha as [Ha Hat], Hb as [Hb Hbt].
  rewrite Forall_forall in HR. apply HR in Ha. apply HR in Hb.
  destruct Ha as (_ & La & _ & Ra), Hb as (_ & Lb & _ & Rb).
  unfold right_of, left_of in *. rewrite negb_true_iff, Z.ltb_ge in Hbt. rewrite Z.ltb_lt in Hat.
  destruct (Nat.lt_ge_cases f p) as [Hf | Hf].
  - specialize (Ra f Hf). specialize (Rb f Hf). lia.
  - exfalso. unfold rank in *. rewrite nth_overflow in Hat, Hbt by lia. lia.
Qed.

Lemma stump_sound m columns own : ordered columns -> length own = p ->
  (forall g, (g < p)%nat -> nth g own [] = map (take g) (nth g columns [])) ->
  match stump K cost m own with
  | Some v => bounded 1 m v (hd [] columns)
  | None => forall v, bounded 1 m v (hd [] columns)
  end.
Proof.
  intros (Hp & HR & Hcol) Hlen Hown. set (R := hd [] columns) in *.
  assert (Hhd : hd [] own = map (take 0) R).
  { unfold R. rewrite !hd_nth. apply Hown. exact has_features. }
  assert (Hn : size (hd [] own) = size R) by (rewrite Hhd; unfold size; rewrite map_length; auto).
  assert (Htot : vsum K (map snd (hd [] own)) = vsum K (map lost R)).
  { rewrite Hhd, map_map. reflexivity. }
  assert (Hwide : forall l, Forall sound_row l -> Forall wide (map lost l)).
  { intros l Hl. rewrite Forall_map. eapply Forall_impl; [|exact Hl]. intros r (Hr & _). exact Hr. }
  assert (Hmain : m <= size R -> exists v, stump K cost m own = Some v /\ bounded 1 m v R).
  { intros Hm. unfold stump. rewrite count_size, Hn, Htot. replace (m <=? size R) with true by (symmetry; apply Z.leb_le; auto).
    destruct (fold_scan_known m (size R) (vsum K (map lost R)) own _ (leaf (vsum K (map lost R))) eq_refl) as (v & Hv & Hle).
    exists v. split; [exact Hv|].
    apply bounded_by_splits; auto. intros f t l r Hl Hr HKl HKr Hm' HL HRt.
    destruct (parts_rows f t R HR HL HRt) as [Hf Ht].
    destruct l as [k1|]; [|simpl in Hl; lia]. destruct r as [k2|]; [|simpl in Hr; lia].
    destruct (Hcol f Hf) as [HP HS]. set (C := nth f columns []) in *.
    set (A := filter (left_of f t) C). set (B := filter (right_of f t) C).
    assert (HC : C = A ++ B) by (apply sorted_parts; auto).
    assert (PA : Permutation A (filter (left_of f t) R)) by (apply perm_filter; auto).
    assert (PB : Permutation B (filter (right_of f t) R)) by (apply perm_filter; auto).
    assert (HA : A <> []) by (intros E; rewrite E in PA; apply Permutation_nil in PA; auto).
    destruct B as [|b B'] eqn:EB; [apply Permutation_nil in PB; contradiction|].
    assert (HCs : Forall sound_row C) by (eapply forall_perm; [apply Permutation_sym; exact HP | exact HR]).
    assert (HAs : Forall sound_row A) by (apply forall_filter; auto).
    assert (HBs : Forall sound_row (b :: B')) by (rewrite <- EB; apply forall_filter; auto).
    simpl in Hm'. rewrite <- (size_perm _ _ PA), <- (size_perm _ _ PB) in Hm'.
    assert (HnR : size R = size A + size (b :: B')).
    { rewrite <- (size_perm _ _ HP), HC. unfold size. rewrite app_length. lia. }
    assert (HmA : size (map (take f) A) = size A) by (unfold size; rewrite map_length; auto).
    assert (Hscan : forall best, exists w,
      scan cost m (size R) (vsum K (map lost R)) (nth f own []) 0 (zeros K) (-1) best = Some w
      /\ w <= rloss (Split f t (Leaf k1) (Leaf k2)) R).
    { intros best. rewrite (Hown f Hf). fold C. rewrite HC, map_app. simpl map.
      destruct (scan_split m (size R) (vsum K (map lost R)) (map (take f) A) (take f b) (map (take f) B') 0
                  (zeros K) (-1) best) as (w & Hw & Hle').
      - apply (Z.lt_le_trans _ t).
        + apply final_below; [destruct A; [congruence|discriminate]|].
          intros e He. apply in_map_iff in He. destruct He as (a & <- & Ha). apply filter_In in Ha.
          destruct Ha as [_ Ha]. unfold left_of in Ha. rewrite Z.ltb_lt in Ha. exact Ha.
        + assert (Hb : In b B) by (rewrite EB; simpl; auto). unfold B in Hb. apply filter_In in Hb.
          destruct Hb as [_ Hb]. unfold right_of, left_of in Hb. rewrite negb_true_iff, Z.ltb_ge in Hb. exact Hb.
      - rewrite HmA. lia.
      - rewrite HmA. lia.
      - exists w. split; [exact Hw|]. etransitivity; [exact Hle'|].
        rewrite map_map. simpl map. fold (vsum K (map (fun r => lost r) A)).
        change (map (fun r : row => lost r) A) with (map lost A).
        pose proof (vsum_wide _ (Hwide _ HAs)) as WA. pose proof (vsum_wide _ (Hwide _ HR)) as WR.
        unfold wide in WA, WR. simpl rloss.
        rewrite <- (sum_perm _ _ (Permutation_map (fun r => nth k1 (lost r) 0) PA)).
        rewrite <- (sum_perm _ _ (Permutation_map (fun r => nth k2 (lost r) 0) PB)).
        pose proof (leaf_le_sum A k1 HAs HKl) as H1.
        assert (H2 : leaf (vsub (vsum K (map lost R)) (vsum K (map lost A)))
                     <= sum (map (fun r => nth k2 (lost r) 0) (b :: B'))).
        { etransitivity; [apply (leaf_nth _ k2); rewrite vsub_length; simpl in HKr; lia|].
          rewrite nth_vsub by lia. rewrite !nth_vsum by auto. rewrite !map_map.
          rewrite <- (sum_perm _ _ (Permutation_map (fun r => nth k2 (lost r) 0) HP)), HC, map_app, sum_app. lia. }
        lia. }
    assert (Hin : In (nth f own []) own) by (apply nth_In; lia).
    destruct (fold_scan_in m (size R) (vsum K (map lost R)) own (nth f own [])
                (rloss (Split f t (Leaf k1) (Leaf k2)) R) Hin Hscan
                (Some (leaf (vsum K (map lost R))))) as (w & Hw & Hle').
    rewrite Hv in Hw. injection Hw as <-. exact Hle'. }
  destruct (Z.le_gt_cases m (size R)) as [Hm | Hm].
  - destruct (Hmain Hm) as (v & -> & Hv). exact Hv.
  - assert (Hvac : forall v, bounded 1 m v R).
    { intros v T _ _ HT. apply rhold_size in HT. lia. }
    destruct (stump K cost m own); auto.
Qed.

(** * Claims *)

Lemma select_tagged (keep : Z -> bool) f g C :
  select keep (map (fun r => (rank f r, take g r)) C) = map (take g) (filter (fun r => keep (rank f r)) C).
Proof. induction C as [|r C IH]; simpl; auto. destruct (keep (rank f r)); simpl; rewrite IH; auto. Qed.

Lemma tagged_length f columns : length columns = p -> length (tagged p f columns) = p.
Proof. intros H. unfold tagged. rewrite <- H at 1. rewrite numbered_length. exact H. Qed.

Lemma nth_tagged f columns g : length columns = p -> (g < p)%nat ->
  nth g (tagged p f columns) [] = map (fun r => (rank f r, take g r)) (nth g columns []).
Proof.
  intros H Hg. unfold tagged. rewrite <- H in Hg. rewrite <- H.
  rewrite (nth_numbered (fun g c => map (fun r => (rank f r, take g r)) c) []) by auto. reflexivity.
Qed.

Lemma stump_of_cut f keep columns few : ordered columns ->
  match stump K cost few (map (select keep) (tagged p f columns)) with
  | Some v => bounded 1 few v (filter (fun r => keep (rank f r)) (hd [] columns))
  | None => forall v, bounded 1 few v (filter (fun r => keep (rank f r)) (hd [] columns))
  end.
Proof.
  intros Hc. pose proof Hc as (Hp & _ & _). rewrite <- hd_cut.
  apply stump_sound; auto using ordered_cut.
  - rewrite map_length. apply tagged_length, Hp.
  - intros g Hg. rewrite (nth_map_in _ _ _ []) by (rewrite tagged_length; auto).
    rewrite nth_tagged, select_tagged, nth_cut; auto.
Qed.

Lemma close_sound f columns m b most highs : ordered columns -> forall low,
  close K cost f columns (tagged p f columns) m b low most highs = true ->
  forall t l r, low <= t <= most -> (levels l <= 1)%nat -> (levels r <= 1)%nat -> labels_below K l -> labels_below K r ->
    rhold m (Split f t l r) (hd [] columns) -> b <= rloss (Split f t l r) (hd [] columns).
Proof.
  intros Hc. pose proof Hc as (Hp & HR & _).
  induction highs as [|high more IH]; simpl; intros low H t l r Ht Hl Hr HKl HKr Hm.
  - rewrite Z.ltb_lt in H. lia.
  - rewrite !andb_true_iff, !Z.leb_le in H. destruct H as [[[Hlow Hhigh] Hv] Hmore].
    destruct (Z.le_gt_cases t high) as [Hth | Hth]; [|apply (IH (high + 1)); auto; lia].
    set (few := fewer f low high m (hd [] columns)) in *.
    pose proof (stump_of_cut f (fun r => r <? low) columns few Hc) as HL.
    pose proof (stump_of_cut f (fun r => high <=? r) columns few Hc) as HU.
    destruct (stump K cost few (map (select (fun r => r <? low)) (tagged p f columns))) as [x|].
    + destruct (stump K cost few (map (select (fun r => high <=? r)) (tagged p f columns))) as [y|].
      * rewrite Z.leb_le in Hv. eapply (bounded_in_interval 1 f low high m few b x y); eauto; lia.
      * eapply (bounded_in_interval 1 f low high m few b x (b - cost - x)); eauto; lia.
    + assert (exists y, bounded 1 few y (filter (fun r => high <=? rank f r) (hd [] columns))) as [y Hy].
      { destruct (stump K cost few (map (select (fun r => high <=? r)) (tagged p f columns))) as [y|];
          [exists y; exact HU | exists 0; exact (HU 0)]. }
      eapply (bounded_in_interval 1 f low high m few b (b - cost - y) y); eauto; lia.
Qed.

Definition proves (d : nat) (sub : claimed) : Prop :=
  forall columns m b lines rest, ordered columns -> sub columns m b lines = Some rest -> bounded d m b (hd [] columns).

Lemma intervals_sound d sub f columns m b most : proves d sub -> ordered columns -> forall fuel low lines rest,
  intervals cost fuel sub f columns m b low most lines = Some rest ->
  forall t l r, low <= t <= most -> (levels l <= d)%nat -> (levels r <= d)%nat -> labels_below K l -> labels_below K r ->
    rhold m (Split f t l r) (hd [] columns) -> b <= rloss (Split f t l r) (hd [] columns).
Proof.
  intros Hsub Hc. pose proof Hc as (Hp & HR & _).
  induction fuel as [|fuel IH]; simpl; intros low lines rest H t l r Ht Hl Hr HKl HKr Hm;
    (destruct (most <? low) eqn:E; [rewrite Z.ltb_lt in E; lia|]); [discriminate|].
  destruct lines as [|[|high [|x [|]]] more]; try discriminate.
  destruct ((low <=? high) && (high <=? most)) eqn:E'; [|discriminate].
  rewrite andb_true_iff, !Z.leb_le in E'.
  set (few := fewer f low high m (hd [] columns)) in *.
  destruct (sub (cut f (fun r => r <? low) columns) few x more) as [more1|] eqn:E1; [|discriminate].
  destruct (sub (cut f (fun r => high <=? r) columns) few (b - cost - x) more1) as [more2|] eqn:E2; [|discriminate].
  destruct (Z.le_gt_cases t high) as [Hth | Hth]; [|apply (IH (high + 1) more2 rest); auto; lia].
  apply Hsub in E1; auto using ordered_cut. apply Hsub in E2; auto using ordered_cut. rewrite hd_cut in E1, E2.
  eapply (bounded_in_interval d f low high m few b x (b - cost - x)); eauto; lia.
Qed.

Lemma each_feature_sound check : forall most f lines rest, each_feature check f most lines = Some rest ->
  forall i, (i < length most)%nat -> 1 <= nth i most 0 ->
  exists lines' rest', check (f + i)%nat (nth i most 0) lines' = Some rest'.
Proof.
  induction most as [|u most IH]; simpl; intros f lines rest H i Hi Hu; [lia|].
  destruct i as [|i].
  - replace (u <? 1) with false in H by (symmetry; rewrite Z.ltb_ge; lia).
    destruct (check f u lines) as [lines'|] eqn:E; [|discriminate]. rewrite Nat.add_0_r. eauto.
  - replace (f + S i)%nat with (S f + i)%nat by lia.
    destruct (u <? 1); [eapply IH; eauto; lia|].
    destruct (check f u lines) as [lines'|]; [|discriminate]. eapply IH; eauto; lia.
Qed.

Theorem claim_sound d : proves d (claim K p cost last d).
Proof.
  induction d as [|d IH]; intros columns m b lines rest Hc H; pose proof Hc as (Hp & HR & Hcol); simpl in H;
    rewrite count_size in H; set (R := hd [] columns) in *;
    (destruct ((b <=? 0) || (size R <? m)) eqn:E;
     [rewrite orb_true_iff, Z.leb_le, Z.ltb_lt in E; intros T _ _ HT; pose proof (rhold_size _ _ _ HT);
      pose proof (rloss_nonneg T R HR); lia|]);
    (destruct (negb (b <=? leaf (vsum K (map lost R)))) eqn:E1; [discriminate|]);
    rewrite negb_false_iff, Z.leb_le in E1.
  - intros T HT HK Hm. destruct T as [k|]; [|simpl in HT; lia]. etransitivity; [exact E1|]. apply leaf_le_sum; auto.
  - destruct d as [|[|d]].
    + match type of H with context [stump K cost m ?own] => set (columns' := own) in * end.
      assert (Hs : match stump K cost m columns' with
                   | Some v => bounded 1 m v R | None => forall v, bounded 1 m v R end).
      { apply stump_sound; auto; unfold columns'; rewrite <- Hp.
        - apply numbered_length.
        - intros g Hg. rewrite (nth_numbered (fun g c => map (take g) c) []) by auto. reflexivity. }
      destruct (stump K cost m columns') as [v|]; simpl in H; auto.
      destruct (b <=? v) eqn:Ev; [|discriminate]. rewrite Z.leb_le in Ev.
      intros T HT HK Hm. specialize (Hs T HT HK Hm). lia.
    + apply bounded_by_splits; auto. intros f t l r Hl Hr HKl HKr Hm HL HRt.
      destruct (parts_rows f t R HR HL HRt) as [Hf Ht].
      destruct (each_feature_sound _ _ _ _ _ H f) as (lines' & rest' & Hcheck); [lia|lia|]. simpl in Hcheck.
      destruct lines' as [|highs more]; [discriminate|].
      destruct (close K cost f columns (tagged p f columns) m b 1 (nth f last 0) highs) eqn:Ec; [|discriminate].
      eapply close_sound; eauto.
    + apply bounded_by_splits; auto. intros f t l r Hl Hr HKl HKr Hm HL HRt.
      destruct (parts_rows f t R HR HL HRt) as [Hf Ht].
      destruct (each_feature_sound _ _ _ _ _ H f) as (lines' & rest' & Hcheck); [lia|lia|]. cbv beta in Hcheck.
      destruct lines' as [|[|z [|]] more]; try discriminate.
      eapply (intervals_sound (S (S d))); eauto.
Qed.
End Rows.

(** * From rows to samples *)

Lemma follows_spec f a b : follows f a b = true <->
  (fst a = fst b /\ rank f (snd a) = rank f (snd b)) \/ (fst a < fst b /\ rank f (snd a) < rank f (snd b)).
Proof. unfold follows. rewrite orb_true_iff, !andb_true_iff, !Z.eqb_eq, !Z.ltb_lt. tauto. Qed.

Lemma is_ranked_sorted f l : is_ranked f l = true -> StronglySorted (fun a b => follows f a b = true) l.
Proof.
  intros H. apply Sorted_StronglySorted.
  - intros a b c. rewrite !follows_spec. lia.
  - induction l as [|a [|b l] IH]; [constructor | repeat constructor|].
    simpl in H. rewrite andb_true_iff in H. destruct H as [Hab H]. constructor; [apply IH; exact H|].
    constructor. exact Hab.
Qed.

Lemma strongly_sorted_two {A} (R : A -> A -> Prop) l a b :
  StronglySorted R l -> In a l -> In b l -> a = b \/ R a b \/ R b a.
Proof.
  induction 1 as [|c l Hl IH Hc]; simpl; [tauto|]. rewrite Forall_forall in Hc.
  intros [-> | Ha] [-> | Hb]; auto.
Qed.

(** Ranks say which samples are below a threshold: some threshold of ranks parts them alike. *)
Lemma threshold_of_ranks (x : Z) (l : list (Z * Z)) :
  (forall a b, In a l -> In b l -> (fst a < fst b -> snd a < snd b) /\ (fst a = fst b -> snd a = snd b)) ->
  exists t, forall a, In a l -> (fst a < x <-> snd a < t).
Proof.
  induction l as [|[y r] l IH]; intros H; [exists 0; simpl; tauto|].
  destruct IH as [t Ht]; [intros a b Ha Hb; apply H; simpl; auto|].
  destruct (Z.lt_ge_cases y x) as [Hy | Hy].
  - exists (Z.max t (r + 1)). intros a [<- | Ha]; simpl; [lia|]. specialize (Ht a Ha).
    destruct (H a (y, r)) as [H1 H2]; simpl; auto. destruct (H (y, r) a) as [H3 H4]; simpl; auto. simpl in *. lia.
  - exists (Z.min t r). intros a [<- | Ha]; simpl; [lia|]. specialize (Ht a Ha).
    destruct (H a (y, r)) as [H1 H2]; simpl; auto. destruct (H (y, r) a) as [H3 H4]; simpl; auto. simpl in *. lia.
Qed.

Section Table.
Variables (P : problem) (pairs : list (sample * row)) (p : nat) (grid cost : Z).
Hypothesis of_costs : cost * grid <= split_cost P * one.
Hypothesis of_pairs : forall s r, In (s, r) pairs ->
  length (features s) = p /\ length (at_ r) = p
  /\ forall k, (k < n_classes P)%nat -> nth k (lost r) 0 * grid <= loss_of P k s.
Hypothesis of_ranks : forall f, (f < p)%nat -> forall s r s' r', In (s, r) pairs -> In (s', r') pairs ->
  (nth f (features s) 0 < nth f (features s') 0 -> rank f r < rank f r')
  /\ (nth f (features s) 0 = nth f (features s') 0 -> rank f r = rank f r').

Lemma same_sides f x : exists t, forall s r, In (s, r) pairs -> goes_left f x s = left_of f t r.
Proof.
  destruct (Nat.lt_ge_cases f p) as [Hf | Hf].
  - destruct (threshold_of_ranks x (map (fun sr => (nth f (features (fst sr)) 0, rank f (snd sr))) pairs)) as [t Ht].
    + intros a b Ha Hb. apply in_map_iff in Ha. apply in_map_iff in Hb.
      destruct Ha as ([s r] & <- & Ha), Hb as ([s' r'] & <- & Hb). simpl. apply (of_ranks f Hf s r s' r' Ha Hb).
    + exists t. intros s r Hsr. unfold goes_left, left_of.
      destruct (Ht (nth f (features s) 0, rank f r)) as [H1 H2];
        [apply in_map_iff; exists (s, r); auto|]. simpl in *.
      destruct (nth f (features s) 0 <? x) eqn:E1, (rank f r <? t) eqn:E2; auto;
        rewrite ?Z.ltb_lt, ?Z.ltb_ge in *; lia.
  - exists x. intros s r Hsr. destruct (of_pairs s r Hsr) as (Hs & Hr & _). unfold goes_left, left_of, rank.
    rewrite !nth_overflow by lia. auto.
Qed.

Lemma tree_of_ranks T : labels_below (n_classes P) T -> exists T',
  levels T' = levels T /\ labels_below (n_classes P) T'
  /\ forall some, incl some pairs ->
       rloss cost T' (map snd some) * grid <= loss P T (map fst some)
       /\ forall m, leaves_hold m T (map fst some) -> rhold m T' (map snd some).
Proof.
  induction T as [k|f x l IHl r IHr]; simpl; intros HK.
  - exists (Leaf k). simpl. repeat split; auto.
    + induction some as [|[s r] some IH]; unfold sum in *; simpl; [lia|].
      assert (In (s, r) pairs) by (apply H; simpl; auto).
      destruct (of_pairs s r H0) as (_ & _ & Hk). specialize (Hk k HK).
      assert (incl some pairs) by (intros a Ha; apply H; simpl; auto). specialize (IH H1). lia.
    + unfold size. rewrite !map_length. auto.
  - destruct HK as [HKl HKr]. destruct (IHl HKl) as (l' & Ll & Kl & Hl), (IHr HKr) as (r' & Lr & Kr & Hr).
    destruct (same_sides f x) as [t Ht]. exists (Split f t l' r'). simpl. rewrite Ll, Lr. split; auto. split; auto.
    intros some Hsome. rewrite !filter_map.
    rewrite (filter_ext_in' (fun a => left_of f t (snd a)) (fun a => goes_left f x (fst a)) some)
      by (intros [s row] Ha; symmetry; apply Ht; auto).
    rewrite (filter_ext_in' (fun a => right_of f t (snd a)) (fun a => negb (goes_left f x (fst a))) some)
      by (intros [s row] Ha; simpl; unfold right_of; rewrite (Ht s row (Hsome _ Ha)); auto).
    destruct (Hl (filter (fun a => goes_left f x (fst a)) some)) as [Vl Sl];
      [intros a Ha; apply filter_In in Ha; apply Hsome; tauto|].
    destruct (Hr (filter (fun a => negb (goes_left f x (fst a))) some)) as [Vr Sr];
      [intros a Ha; apply filter_In in Ha; apply Hsome; tauto|].
    split; [lia|]. intros m [Hml Hmr]. auto.
Qed.
End Table.

Lemma map_fst_combine {A B} (l : list A) (l' : list B) : length l = length l' -> map fst (combine l l') = l.
Proof. revert l'. induction l; destruct l'; simpl; intros; auto; try discriminate. f_equal. auto. Qed.

Lemma nth_combine_le (r last : list Z) : length r = length last ->
  forallb (fun xu => (0 <=? fst xu) && (fst xu <=? snd xu)) (combine r last) = true ->
  forall f, (f < length last)%nat -> 0 <= nth f r 0 <= nth f last 0.
Proof.
  revert last. induction r as [|x r IH]; destruct last as [|u last]; simpl; intros HL H f Hf; try discriminate; try lia.
  rewrite !andb_true_iff, !Z.leb_le in H. destruct f; [tauto|]. apply IH; try lia. tauto.
Qed.

Lemma in_numbered {A} (F : nat -> A) p f : (f < p)%nat ->
  In (f, F f) (combine (seq 0 p) (map F (seq 0 p))).
Proof.
  intros Hf. assert (Hgen : forall s n, (s <= f < s + n)%nat -> In (f, F f) (combine (seq s n) (map F (seq s n)))).
  { intros s n. revert s. induction n as [|n IH]; simpl; intros s Hs; [lia|].
    destruct (Nat.eq_dec s f) as [-> | Hne]; [auto|]. right. apply IH. lia. }
  apply Hgen. lia.
Qed.

(** If the checker accepts, whatever the ranks and lines, no admitted tree is below the bound. *)
Theorem check_sound P ranks last q b lines : check P ranks last q b lines = true -> is_bound P.
Proof.
  unfold check.
  set (K := n_classes P). set (p := length last). set (grid := 2 ^ q).
  set (pairs := map (fun sr => (fst sr, row_of P grid (fst sr) (snd sr))) (combine (samples P) ranks)).
  set (sorted := map (fun f => sorted_by f pairs) (seq 0 p)). set (cost := split_cost P * one / grid).
  set (m := if 1 <? least_size P then least_size P else 0).
  intros H. rewrite !andb_true_iff in H.
  destruct H as [[[[[[[[[[[Hlen Hq] Hp] HK] Hcost] Hsamples] Hcosts] Hranks] Hlast] Hsorted] Hbound] Hclaim].
  rewrite Nat.eqb_eq in Hlen. rewrite Z.leb_le in Hq, Hcost, Hbound. rewrite Nat.ltb_lt in Hp, HK.
  rewrite forallb_forall in Hsamples, Hcosts, Hranks, Hlast, Hsorted.
  assert (Hgrid : 0 < grid) by (apply Z.pow_pos_nonneg; lia).
  assert (Hone : 0 <= one) by (apply Z.pow_nonneg; lia).
  assert (Hfst : map fst pairs = samples P).
  { unfold pairs. rewrite map_map. simpl. apply map_fst_combine, Hlen. }
  assert (Hpairs : forall s r, In (s, r) pairs ->
            exists own, In s (samples P) /\ In own ranks /\ r = row_of P grid s own).
  { intros s r Hin. unfold pairs in Hin. apply in_map_iff in Hin. destruct Hin as ([s' own] & E & Hin).
    simpl in E. injection E as <- <-. exists own. split; [eapply in_combine_l; eauto|].
    split; [eapply in_combine_r; eauto|auto]. }
  assert (Hloss : forall k s, In s (samples P) -> 0 <= loss_of P k s).
  { intros k s Hs. apply Hsamples in Hs. rewrite andb_true_iff, Z.leb_le in Hs. unfold loss_of.
    apply Z.mul_nonneg_nonneg; [tauto|].
    destruct (nth_in_or_default (class s) (costs P) []) as [Hin | ->]; [|destruct k; simpl; lia].
    apply Hcosts in Hin. rewrite forallb_forall in Hin.
    destruct (nth_in_or_default k (nth (class s) (costs P) []) 0) as [Hin' | ->]; [|lia].
    apply Hin in Hin'. rewrite Z.leb_le in Hin'. exact Hin'. }
  assert (Hrows : forall s r, In (s, r) pairs -> sound_row K p last r /\ length (features s) = p).
  { intros s r Hin. destruct (Hpairs s r Hin) as (own & Hs & Hown & ->).
    pose proof (Hranks own Hown) as Ho. rewrite Nat.eqb_eq in Ho.
    pose proof (Hsamples s Hs) as Hf. rewrite andb_true_iff, Nat.eqb_eq in Hf.
    split; [|tauto]. unfold sound_row, wide, row_of. simpl. repeat split.
    - rewrite map_length, seq_length. auto.
    - exact Ho.
    - rewrite Forall_map, Forall_forall. intros k _. apply Z.div_pos; auto.
    - apply (nth_combine_le own last); auto.
    - apply (nth_combine_le own last); auto. }
  assert (Hall : Forall (sound_row K p last) (map snd pairs)).
  { rewrite Forall_map, Forall_forall. intros [s r] Hin. simpl. apply (Hrows s r Hin). }
  assert (Hperm : forall f, Permutation (map (fun sr => (nth f (features (fst sr)) 0, snd sr)) pairs) (sorted_by f pairs))
    by (intros f; apply Sorting.Permuted_sort).
  assert (Hcolumn : forall f, Permutation (map snd pairs) (map snd (sorted_by f pairs))).
  { intros f. pose proof (Permutation_map snd (Hperm f)) as HP. rewrite map_map in HP. exact HP. }
  assert (Hrank : forall f, (f < p)%nat ->
            StronglySorted (fun a b => follows f a b = true) (sorted_by f pairs)).
  { intros f Hf. apply is_ranked_sorted. apply (Hsorted (f, sorted_by f pairs)).
    apply (in_numbered (fun f => sorted_by f pairs)). exact Hf. }
  assert (Hnth : forall g, (g < p)%nat -> nth g (map (map snd) sorted) [] = map snd (sorted_by g pairs)).
  { intros g Hg. unfold sorted. rewrite map_map.
    rewrite (nth_map_in _ _ _ 0%nat) by (rewrite seq_length; auto). rewrite seq_nth by auto. auto. }
  assert (Hord : ordered K p last (map (map snd) sorted)).
  { unfold ordered. rewrite hd_nth, Hnth by auto. repeat split.
    - unfold sorted. rewrite !map_length, seq_length. auto.
    - eapply forall_perm; [apply Hcolumn | exact Hall].
    - rewrite Hnth by auto. eapply Permutation_trans; [apply Permutation_sym, Hcolumn | apply Hcolumn].
    - rewrite Hnth by auto. pose proof (Hrank g ltac:(assumption)) as HS. clear - HS.
      induction HS as [|a l Hl IH Ha]; simpl; constructor; auto.
      rewrite Forall_map. eapply Forall_impl; [|exact Ha]. intros b Hb. rewrite follows_spec in Hb.
      unfold by_rank. lia. }
  destruct (claim K p cost last (depth P) (map (map snd) sorted) m b lines) as [[|]|] eqn:Hc; try discriminate.
  assert (Hcost' : 0 <= cost) by (apply Z.div_pos; auto; apply Z.mul_nonneg_nonneg; auto).
  apply (claim_sound K p last Hp eq_refl cost Hcost') in Hc; auto.
  rewrite hd_nth, Hnth in Hc by auto.
  intros T (HT & HKT & HmT).
  destruct (tree_of_ranks P pairs p grid cost) with (T := T) as (T' & Lev & HKT' & HT'); auto.
  - unfold cost. rewrite Z.mul_comm. apply Z.mul_div_le. exact Hgrid.
  - intros s r Hin. destruct (Hrows s r Hin) as ((_ & Hr & _) & Hs). split; auto. split; auto.
    intros k Hk. destruct (Hpairs s r Hin) as (own & _ & _ & ->). unfold row_of. simpl.
    rewrite (nth_map_in _ _ _ 0%nat) by (rewrite seq_length; auto). rewrite seq_nth by auto. simpl.
    rewrite Z.mul_comm. apply Z.mul_div_le. exact Hgrid.
  - intros f Hf s r s' r' Hin Hin'.
    assert (In (nth f (features s) 0, r) (sorted_by f pairs)) as Ha.
    { eapply Permutation_in; [apply Hperm|]. apply in_map_iff. exists (s, r). auto. }
    assert (In (nth f (features s') 0, r') (sorted_by f pairs)) as Hb.
    { eapply Permutation_in; [apply Hperm|]. apply in_map_iff. exists (s', r'). auto. }
    destruct (strongly_sorted_two _ _ _ _ (Hrank f Hf) Ha Hb) as [E | [E | E]];
      [injection E as E1 E2; subst; lia | |]; rewrite follows_spec in E; simpl in E; lia.
  - destruct (HT' pairs (incl_refl _)) as [Hv Hh]. rewrite Hfst in Hv, Hh.
    assert (b <= rloss cost T' (map snd pairs)).
    { rewrite (rloss_perm cost T' _ _ (Hcolumn 0%nat)). apply Hc; auto; [rewrite Lev; auto|].
      eapply rhold_perm; [apply Hcolumn|]. unfold m. destruct (1 <? least_size P) eqn:E.
      - apply Hh, HmT. rewrite Z.ltb_lt in E. exact E.
      - apply rhold_zero. }
    nia.
Qed.

(** What [value] says is the loss of an admitted tree. *)
Theorem value_sound P T v : value P T = Some v -> exists T', admitted P T' /\ loss P T' (samples P) = v.
Proof.
  unfold value. set (best := best_labels P T (samples P)).
  destruct (_ && _) eqn:H; [|discriminate]. intros E. injection E as <-. exists best. split; [|reflexivity].
  rewrite !andb_true_iff, orb_true_iff, negb_true_iff, Nat.leb_le, Nat.ltb_lt, Z.ltb_ge in H.
  destruct H as [[Hl HK] Hm]. repeat split; [exact Hl| |].
  - unfold best. clear - HK. generalize (samples P). induction T as [k|f t l IHl r IHr]; simpl; [|auto]. intros S.
    assert (H : forall ks (k : nat) (v : Z), (k < n_classes P)%nat -> (forall k', In k' ks -> (k' < n_classes P)%nat) ->
              (fst (fold_left (fun (best : nat * Z) k' => let w := sum (map (loss_of P k') S) in
                                 if (w <? snd best)%Z then (k', w) else best) ks (k, v)) < n_classes P)%nat).
    { induction ks as [|k' ks IH]; simpl; intros k0 v Hk Hks; [exact Hk|].
      destruct (sum (map (loss_of P k') S) <? v); apply IH; auto. }
    apply H; [exact HK|]. intros k' Hk'. apply in_seq in Hk'. lia.
  - intros Hleast. destruct Hm as [Hm | Hm]; [lia|]. clear - Hm. revert Hm. generalize best, (samples P). clear.
    induction best as [k|f t l IHl r IHr]; simpl; intros S.
    + rewrite Z.leb_le, count_size. auto.
    + rewrite andb_true_iff. intros [Hl Hr]. auto.
Qed.

Print Assumptions check_sound.
Print Assumptions value_sound.
